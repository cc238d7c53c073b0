// Locks as programs with ioredis take them, with no rule for them: SET NX PX, given up by DEL or by a script.
'use strict';

const Redis = require('ioredis');
const { step, port } = require('./steps');

const ROUNDS = 12;
const COMPARE_AND_DELETE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

async function main() {
  const redis = new Redis({ port, host: '127.0.0.1' });
  for (let n = 1; n <= ROUNDS; n += 1) {
    const name = `app:mutex:${n}`;
    await step('acquire', () => redis.set(name, 'token', 'PX', 30000, 'NX'), 'OK');
    if (n % 2) {
      await step('release by DEL', () => redis.del(name), 1);
    } else {
      await step('release by script', () => redis.eval(COMPARE_AND_DELETE, 1, name, 'token'), 1);
    }
    // The same in a transaction.
    await step('transaction', async () => {
      const answers = await redis.multi().set(name, 'token', 'NX', 'PX', 30000).pexpire(name, 60000).del(name).exec();
      return answers.map(([, answer]) => answer);
    }, ['OK', 1, 1]);
  }
  redis.disconnect();
}

main();
