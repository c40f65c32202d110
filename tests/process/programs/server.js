const server = require('http').createServer((_, answer) => answer.end('hello'));
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`));
process.on('SIGINT', () => { console.log('closing'); server.close(() => process.exit(0)); });
