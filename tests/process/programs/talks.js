// Node's clients and servers, each with what came of it; or, given a URL, what is there.
'use strict';
const cluster = require('cluster');
const { fork } = require('child_process');
const { once } = require('events');
const dgram = require('dgram');
const http = require('http');
const net = require('net');

const BIG = Buffer.alloc(3_000_000, 'x');

function get(options) {
  return new Promise((resolve, reject) => {
    http.get(options, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => resolve(Buffer.concat(parts)));
    }).on('error', reject);
  });
}

async function requests(...at) {
  const server = http.createServer((request, answer) => {
    if (request.url === '/big') answer.end(BIG);
    else request.pipe(answer);
  });
  server.listen(...at);
  await once(server, 'listening');
  const place = typeof at[0] === 'string'
    ? { socketPath: at[0] } : { host: 'localhost', port: server.address().port };
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const all = await Promise.all(
    Array.from({ length: 20 }, () => get({ ...place, path: '/big', agent })));
  const posted = await new Promise((resolve, reject) => {
    const request = http.request({ ...place, method: 'POST', agent }, async (answer) => {
      let size = 0;
      for await (const part of answer) size += part.length;
      resolve(size);
    });
    request.on('error', reject);
    request.end(BIG);
  });
  agent.destroy();
  server.close();
  return [all.every((each) => each.equals(BIG)), posted];
}

async function fetched() {
  const server = http.createServer((_, answer) => answer.end('fetched')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
  const text = await answer.text();
  server.closeAllConnections();
  server.close();
  return text;
}

async function refused() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  const [error] = await once(net.connect(port, '127.0.0.1'), 'error');
  return error.code;
}

async function datagrams() {
  const server = dgram.createSocket('udp4');
  server.on('message', (text, from) => server.send(String(text).toUpperCase(), from.port));
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const got = [];
  for (const connects of [false, true]) {
    const client = dgram.createSocket('udp4');
    const answered = once(client, 'message');
    if (connects) {
      client.connect(port, '127.0.0.1');
      await once(client, 'connect');
      client.send(['in ', 'parts']);
    } else {
      client.send('hello', port, '127.0.0.1');
    }
    got.push(String((await answered)[0]));
    client.close();
  }
  server.close();
  return got;
}

async function handedOver() {
  const child = fork(__filename, ['takes']);
  const server = net.createServer({ pauseOnConnect: true }, (connection) => {
    child.send('take it', connection);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect(server.address().port, '127.0.0.1');
  client.write('handed over');
  const [text] = await once(client, 'data');
  client.end();
  server.close();
  child.disconnect();
  return String(text);
}

async function workers(policy) {
  cluster.setupPrimary({ args: ['works'] });
  cluster.schedulingPolicy = policy;
  const all = [cluster.fork(), cluster.fork()];
  const [[address]] = await Promise.all(all.map((each) => once(each, 'listening')));
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => get({ host: '127.0.0.1', port: address.port, agent: false })));
  await Promise.all(all.map((each) => { each.kill(); return once(each, 'exit'); }));
  return answers.map(String).every((each) => each === 'worked');
}

async function main() {
  const [how] = process.argv.slice(2);
  if (how === 'takes') {
    process.on('message', (_, connection) => {
      connection.on('data', (text) => connection.end(`taken: ${text}`));
      connection.resume();
    });
  } else if (how === 'works') {
    http.createServer((_, answer) => answer.end('worked')).listen(0, '127.0.0.1');
  } else if (how !== undefined) {
    process.stdout.write(await get(how));
  } else {
    const local = `${process.env.TMPDIR}/node-${process.pid}`;
    console.log(JSON.stringify({
      tcp: await requests(0, 'localhost'),
      unix: await requests(local),
      fetched: await fetched(),
      refused: await refused(),
      datagrams: await datagrams(),
      handedOver: await handedOver(),
      workers: await workers(cluster.SCHED_RR),
    }));
  }
}

main().catch((error) => { console.error(error.message || error.code); process.exitCode = 1; });
