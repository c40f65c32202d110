const { spawn, spawnSync, execSync } = require('child_process');

const ended = (child) =>
  new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));

test('a child is killed', async () => {
  const child = spawn('sleep', ['60']);
  child.kill();
  expect(await ended(child)).toBe('SIGTERM');
});

test('a group is killed', async () => {
  const child = spawn('sh', ['-c', 'sleep 60; sleep 60'], { detached: true });
  process.kill(-child.pid, 'SIGKILL');
  expect(await ended(child)).toBe('SIGKILL');
});

test('a child runs out of time', () => {
  expect(spawnSync('sleep', ['60'], { timeout: 50 }).signal).toBe('SIGTERM');
});

test('a shell fails', () => {
  expect(() => execSync('exit 3', { stdio: 'ignore' })).toThrow(/Command failed/);
});

test('a signal reaches a handler', async () => {
  const code = "process.on('SIGUSR2', () => process.exit(4)); setInterval(() => 0, 1000); console.log(1)";
  const child = spawn(process.execPath, ['-e', code]);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGUSR2');
  expect(await ended(child)).toBe(4);
});

test('what is not there', async () => {
  const child = spawn('no-such-program');
  expect(await new Promise((resolve) => child.on('error', (error) => resolve(error.code)))).toBe('ENOENT');
});
