// What became of each test, from the report of jest or vitest.
const lines = require('./out.json').testResults.flatMap((file) =>
  file.assertionResults.length
    ? file.assertionResults.map((test) => `${test.status} ${test.fullName}`)
    : [`${file.status} ${file.name.split('/').pop()}`],
);
console.log(lines.sort().join('\n'));
