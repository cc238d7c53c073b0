-- RENAME, RENAMENX of a lock. KEYS: source, its record, target, and where the target is a lock its record and its fence
-- key if wanted. ARGV: the source's caller; the target's or '-'; the command.
local function main()
  local s, w, t, v = look(KEYS[1], KEYS[2]), who(ARGV[1]), nil, nil
  local nx = string.upper(ARGV[3]) == 'RENAMENX'
  if s.at == -2 then
    local a = redis.pcall(unpack(ARGV, 3))
    local _, report = release(s, w)
    return {report, a}
  end
  if nx and call('EXISTS', KEYS[3]) == 1 then return redis.pcall(unpack(ARGV, 3)) end
  need(s, 'DEL', 'TIME', 'PTTL', 'HSET', 'HDEL', 'PEXPIRE', 'PEXPIREAT', 'PERSIST',
    KEYS[5] and 'GET', KEYS[5] and 'SET')
  local place
  if ARGV[2] ~= '-' then
    t, v = look(KEYS[3], KEYS[4]), who(ARGV[2])
    place = t.at ~= -2 and row(t, v)
    local why = place == 'debtor' and 'late' or place == 'other' and reason(t, v) or place == 'refused' and 'unmanaged'
    local outcome = account(s, w)
    if why and (outcome == 'released' or outcome == 'pooled' or outcome == 'unmanaged') then
      return {'-;refused overwrite ' .. why .. without_ttl(t), held(KEYS[3])}
    end
  end
  local go, report = release(s, w)
  if not go then return {report, answers.nokey} end
  local a = redis.pcall(unpack(ARGV, 3))
  if type(a) == 'table' and a.err then return a end
  removed(s)
  if not t then return {report, a} end
  if place == 'holder' or place == 'sibling' then
    return {report .. ';overwritten' .. follow(t, v, v.max > 0 and v.max or v.default), a}
  end
  return {report .. ';' .. grant(t, v, KEYS[5]), a}
end
