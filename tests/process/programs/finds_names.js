// By the C library, and by Node's own resolver.
'use strict';
const dns = require('dns').promises;

async function main() {
  for (const name of ['named.test', 'large.test', 'nobody.test']) {
    for (const how of [() => dns.lookup(name, { all: true }), () => dns.resolve4(name)]) {
      try {
        const all = await how();
        console.log(name, all.map((each) => each.address || each).sort().join(' '));
      } catch (error) {
        console.log(name, error.code);
      }
    }
  }
}

main();
