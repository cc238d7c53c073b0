// node redlock (version 5): several resources in one script, extension, contention, expiry, using().
'use strict';

const Redis = require('ioredis');
const { default: Redlock } = require('redlock');
const { step, pause, port } = require('./steps');

async function main() {
  const redis = new Redis({ port });
  const impatient = new Redlock([redis], { retryCount: 0 });
  const patient = new Redlock([redis], { retryCount: 20, retryDelay: 50, retryJitter: 10 });
  for (const redlock of [impatient, patient]) redlock.on('error', () => {});

  let lock;
  await step('acquire', async () => { lock = await impatient.acquire(['lock:red'], 30000); return lock.resources; }, ['lock:red']);
  await step('value is the token', async () => (await redis.get('lock:red')) === lock.value, true);
  await step('contention', () => impatient.acquire(['lock:red'], 1000), '<ExecutionError>');
  await step('extend', async () => { lock = await lock.extend(60000); return lock.expiration > Date.now() + 55000; }, true);
  await step('ttl', async () => { const left = await redis.pttl('lock:red'); return left > 58000 && left <= 60000; }, true);
  await step('release', async () => { await lock.release(); return redis.exists('lock:red'); }, 0);
  await step('release twice', () => lock.release(), '<ExecutionError>');

  await step('two resources', async () => { lock = await impatient.acquire(['lock:red:a', 'lock:red:b'], 30000); return lock.resources; },
    ['lock:red:a', 'lock:red:b']);
  await step('one of them contended', () => impatient.acquire(['lock:red:c', 'lock:red:b'], 1000), '<ExecutionError>');
  await step('nothing was taken', () => redis.exists('lock:red:c'), 0);
  await step('release both', async () => { await lock.release(); return redis.exists('lock:red:a', 'lock:red:b'); }, 0);

  let late;
  await step('acquire for a short time', async () => { late = await impatient.acquire(['lock:red:late'], 200); return late.attempts.length; }, 1);
  await step('another waits for the expiry', async () => { lock = await patient.acquire(['lock:red:late'], 30000); return lock.resources; },
    ['lock:red:late']);
  await step('late extend', () => late.extend(1000), '<ExecutionError>');
  await step('late release', () => late.release(), '<ExecutionError>');
  await step('the lock is still the other one\'s', async () => (await redis.get('lock:red:late')) === lock.value, true);
  await step('the other releases', async () => { await lock.release(); return redis.exists('lock:red:late'); }, 0);

  await step('using', () => patient.using(['lock:red:using'], 1000, { automaticExtensionThreshold: 700 }, async (signal) => {
    await pause(1500);
    return [signal.aborted, await redis.exists('lock:red:using')];
  }), [false, 1]);
  await step('free after using', () => redis.exists('lock:red:using'), 0);
  await step('using, contended', async () => {
    await redis.set('lock:red:using', 'x', 'PX', 30000, 'NX');
    return impatient.using(['lock:red:using'], 1000, async () => 'inside');
  }, '<ExecutionError>');
  await step('give it up', () => redis.del('lock:red:using'), 1);
  await redis.quit();
}

main();
