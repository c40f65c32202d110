// Where a test has a process of its own, the runner sees it die.
test('dies', () => process.kill(process.pid, 'SIGKILL'));
