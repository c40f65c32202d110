const { spawn, exec, execFile, fork, spawnSync, execSync } = require('child_process');
const log = (...words) => console.log(...words);
if (process.argv[2] === 'forked') {
  process.on('message', m => { process.send(m * 2); process.disconnect(); });
} else (async () => {
  log(spawnSync('sh', ['-c', 'cat; exit 3'], { input: 'in' }).stdout.toString());
  log(execSync('echo sync').toString());
  log(spawnSync('no-such-program').error.code);
  log(spawnSync('sleep', ['600'], { timeout: 50 }).signal);
  await new Promise(done => exec('kill -9 $$', e => { log(e.signal); done(); }));
  await new Promise(done => execFile('true', e => { log(e); done(); }));
  const detached = spawn('cat', [], { detached: true });
  detached.stdout.on('data', d => log(d.toString()));
  const over = new Promise(done => detached.on('exit', (c, s) => { log(c, s); done(); }));
  detached.stdin.end('hello');
  await over;
  const killed = spawn('cat');
  killed.kill('SIGTERM');
  await new Promise(done => killed.on('exit', (c, s) => { log(c, s); done(); }));
  const child = fork(__filename, ['forked']);
  child.send(21);
  await new Promise(done => child.on('message', m => { log(m); done(); }));
  process.kill(process.pid, 0);
  process.exitCode = 5;
})();
