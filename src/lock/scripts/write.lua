-- KEYS: lock, record, then the command's other keys. ARGV: caller; acquire, overwrite or takeover; how a refusal is
-- answered (held, nil); whether the answer tells that it was written (reply), it always is (always) or nothing tells
-- (unknown), or the options are not understood (odd); the place of the fence key among KEYS, or 0; the command.
local function main()
  local k, kind, w, s = KEYS[1], ARGV[2], who(ARGV[1]), look(KEYS[1], KEYS[2])
  local fence = KEYS[tonumber(ARGV[5])]
  if s.at == -2 then
    -- RENAME could not be undone.
    if string.find(string.upper(ARGV[6]), '^RENAME') then
      need(s, 'EXISTS', 'TIME', 'HSET', 'PTTL', 'PEXPIRE', 'PEXPIREAT', fence and 'GET', fence and 'SET')
    end
    local a = redis.pcall(unpack(ARGV, 6))
    local ok, report = pcall(function() return call('EXISTS', k) == 1 and grant(s, w, fence) end)
    if not ok then
      undo(k, s)
      return failure(report)
    end
    if report then return {report, a} end
    if s.early then finish(s) end
    return {type(a) == 'table' and a.err and 'failed' or '-', a}
  end
  if kind == 'acquire' then return redis.pcall(unpack(ARGV, 6)) end
  local place = row(s, w)
  local why = place == 'debtor' and 'late'
    or kind == 'overwrite' and (place == 'other' and reason(s, w) or place == 'refused' and 'unmanaged')
  if why then
    if ARGV[4] == 'odd' then
      -- NX cannot write here; it only makes the server say what it does not like.
      local command = {unpack(ARGV, 6)}
      command[#command + 1] = 'NX'
      local a = redis.pcall(unpack(command))
      if type(a) == 'table' and a.err then return a end
    end
    return {'refused overwrite ' .. why .. without_ttl(s), ARGV[3] == 'held' and held(k) or false}
  end
  need(s, 'PTTL', 'TIME', 'HSET', 'HDEL', 'PEXPIRE', 'PEXPIREAT', 'PERSIST')
  local a = redis.pcall(unpack(ARGV, 6))
  if type(a) == 'table' and a.err then return a end
  local e = expiry(k)
  if e == -2 then
    if s.state ~= 'unmanaged' then finish(s) end
    return {'ended', a}
  end
  local wrote = ARGV[4] == 'always' or ARGV[4] ~= 'unknown' and (a == 1 or type(a) == 'table') or false
  if place == 'holder' or place == 'sibling' then
    if not wrote and e == s.at then return {'-', a} end
    return {'overwritten' .. follow(s, w, w.max > 0 and w.max or w.default), a}
  end
  if place == 'other' then
    if s.alien then return {'takenover', a} end
    local f = {'owner', 'token', 'connection_open', 'owing', 'fence'}
    for _, x in ipairs(s.doubts) do fields(f, x) end
    call('HDEL', s.r, unpack(f))
    call('HSET', s.r, 'opened', '1', 'lease', lease(s.h.acquired_at, '-', s.h.number, 0, s.window))
    follow(s, w, w.default > 0 and w.default or w.max)
    return {'takenover', a}
  end
  if kind == 'overwrite' and wrote then return {grant(s, w, fence), a} end
  if s.state == 'open' then follow(s, w, w.default > 0 and w.default or w.max) end
  return {'-', a}
end
