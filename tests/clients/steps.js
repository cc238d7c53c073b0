// The steps of a Node client test: each prints one JSON line with what came back, or which exception.
// A step may name the value it must have; run.py checks that too. Nothing random is printed.
'use strict';

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

module.exports = { step, pause, port };
