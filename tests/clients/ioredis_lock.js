// ioredis: bare locks and locks released in Lua, in pipelines, transactions, and over a reconnect.
'use strict';

const Redis = require('ioredis');
const { step, pause, port, tls } = require('./steps');

const COMPARE_AND_DELETE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

async function bare(redis, other) {
  await step('SET PX NX', () => redis.set('lock:bare', '1', 'PX', 30000, 'NX'), 'OK');
  await step('contended', () => other.set('lock:bare', '1', 'PX', 30000, 'NX'), null);
  await step('SETNX contended', () => other.setnx('lock:bare', '1'), 0);
  await step('PEXPIRE', () => redis.pexpire('lock:bare', 60000), 1);
  await step('PTTL', async () => { const left = await redis.pttl('lock:bare'); return left > 58000 && left <= 60000; }, true);
  await step('DEL', () => redis.del('lock:bare'), 1);
  await step('DEL of nothing', () => redis.del('lock:bare'), 0);
}

async function byToken(redis, other) {
  redis.defineCommand('freeLock', { numberOfKeys: 1, lua: COMPARE_AND_DELETE });
  await step('SET with a token', () => redis.set('lock:token', 'mine', 'EX', 30, 'NX'), 'OK');
  await step('release with a wrong token', () => redis.eval(COMPARE_AND_DELETE, 1, 'lock:token', 'yours'), 0);
  await step('release by EVALSHA', () => redis.freeLock('lock:token', 'mine'), 1);
  await step('again', () => redis.freeLock('lock:token', 'mine'), 0);
  await step('SET for a short time', () => redis.set('lock:token', 'mine', 'PX', 100, 'NX'), 'OK');
  await pause(200);
  await step('the other takes it', () => other.set('lock:token', 'yours', 'EX', 30, 'NX'), 'OK');
  await step('late release', () => redis.freeLock('lock:token', 'mine'), 0);
  await step('SCRIPT FLUSH', () => other.script('FLUSH'), 'OK');
  await step('release after a flush', () => redis.freeLock('lock:token', 'yours'), 1);
  await step('a script error', () => redis.eval('return redis.call("incr", KEYS[1], 1)', 1, 'lock:token').catch(
    (error) => error.constructor.name), 'ReplyError');
}

async function pipelines(redis, other) {
  await step('pipeline', () => redis.pipeline().set('lock:pipe', 'v', 'EX', 30, 'NX').get('lock:pipe')
    .set('lock:pipe', 'w', 'NX').expire('lock:pipe', 60).del('lock:pipe').exists('lock:pipe').exec(),
  [[null, 'OK'], [null, 'v'], [null, null], [null, 1], [null, 1], [null, 0]]);
  await step('pipeline with an error', async () => {
    const results = await redis.pipeline().set('lock:pipe', 'v', 'EX', 30, 'NX').incr('lock:pipe').del('lock:pipe').exec();
    return results.map(([error, value]) => (error ? error.message : value));
  }, ['OK', 'ERR value is not an integer or out of range', 1]);
  await step('MULTI', () => redis.multi().set('lock:multi', 'v', 'EX', 30, 'NX').set('lock:multi', 'w', 'NX')
    .get('lock:multi').del('lock:multi').exec(), [[null, 'OK'], [null, null], [null, 'v'], [null, 1]]);
  await step('MULTI without pipeline', async () => {
    await redis.multi({ pipeline: false });
    const queued = await redis.set('lock:multi', 'v', 'EX', 30, 'NX');
    await redis.del('lock:multi');
    return [queued, await redis.exec()];
  }, ['QUEUED', [[null, 'OK'], [null, 1]]]);
  await step('WATCH and a conflict', async () => {
    await redis.set('lock:watch', 'v', 'EX', 30, 'NX');
    await redis.watch('lock:watch');
    await other.set('lock:watch', 'w', 'XX', 'EX', 30);
    return redis.multi().del('lock:watch').exec();
  }, null);
  await step('WATCH and no conflict', async () => {
    await redis.watch('lock:watch');
    return redis.multi().del('lock:watch').exec();
  }, [[null, 1]]);
  await step('a hundred at once', async () => {
    const all = [];
    for (let i = 0; i < 100; i++) all.push(redis.set(`lock:many:${i}`, i, 'EX', 30, 'NX'), redis.del(`lock:many:${i}`));
    const answers = await Promise.all(all);
    return answers.every((answer, i) => answer === (i % 2 ? 1 : 'OK'));
  }, true);
}

async function reconnect(redis, other) {
  await step('SET before the connection breaks', () => redis.set('lock:again', '1', 'EX', 30, 'NX'), 'OK');
  await step('the connection breaks', async () => {
    const id = await redis.client('ID');
    const ready = new Promise((resolve) => redis.once('ready', resolve));
    const killed = await other.client('KILL', 'ID', id);
    await ready;
    return killed;
  }, 1);
  await step('DEL on the new connection', () => redis.del('lock:again'), 1);
  await step('SET before quitting', () => redis.set('lock:again', '1', 'EX', 30, 'NX'), 'OK');
  await step('DEL right behind a disconnect', async () => {
    redis.disconnect(true);
    return redis.del('lock:again');
  }, 1);
}

async function subscriber(redis) {
  const listener = redis.duplicate();
  await step('woken by a message', async () => {
    const heard = new Promise((resolve) => listener.on('message', (channel, message) => resolve(`${channel} ${message}`)));
    await listener.subscribe('freed');
    await redis.publish('freed', 'lock:x');
    return heard;
  }, 'freed lock:x');
  await listener.quit();
}

async function main() {
  const redis = new Redis({ port, ...tls, retryStrategy: () => 50 });
  const other = new Redis({ port, ...tls, retryStrategy: () => 50 });
  redis.on('error', () => {});
  for (const part of [bare, byToken, pipelines, reconnect, subscriber]) await part(redis, other);
  await step('QUIT', () => redis.quit(), 'OK');
  await other.quit();
}

main();
