// The steps of a Node client test: each prints one JSON line with what came back, or which exception.
// A step may name the value it must have; run.py checks that too. Nothing random is printed.
'use strict';

const fs = require('fs');

async function step(name, action, expected) {
  const line = { step: name };
  try {
    const result = await action();
    line.result = result === undefined ? null : result;
  } catch (error) {
    line.error = `<${error.constructor.name}>`;
    line.message = error.message;
  }
  if (expected !== undefined) line.expected = expected;
  console.log(JSON.stringify(line));
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const port = Number(process.argv[2]);

// What ioredis has to be told where tests/checks/tls.py names the files of certificates; else nothing.
const files = (process.env.LOCKWARD_TEST_TLS || '').split(' ').filter(Boolean).map((file) => fs.readFileSync(file));
const tls = files.length ? { tls: { ca: files[0], cert: files[1], key: files[2] } } : {};

module.exports = { step, pause, port, tls };
