// A server in development: it has a child, and ends when it is asked to.
const { spawn } = require('child_process');
const { readFileSync } = require('fs');

spawn('sleep', ['60']);
process.on('SIGTERM', () => {
  console.log('asked to end');
  process.exit(0);
});
console.log('started', process.argv[2], readFileSync('n', 'utf8').trim());
