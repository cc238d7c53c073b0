-- The long way round.
local function main()
  local k, w, kind, amount = KEYS[1], who(ARGV[1]), ARGV[2], tonumber(ARGV[3])
  local s = look(k, KEYS[2])
  if kind == 'at' then
    s.now = s.now or clock()
    if amount <= s.now then return remove(s, w, ARGV[5], ARGV[4], '', 6) end
    amount = amount - s.now
  end
  if s.at == -2 then
    if s.early then finish(s) end
    return redis.pcall(unpack(ARGV, 6))
  end
  local place, why = row(s, w)
  if place == 'debtor' then why = 'late'
  elseif place == 'refused' then why = 'unmanaged'
  elseif place == 'other' then
    -- A lease without TTL may get one from anybody, if it leaves the holder time.
    local least = w.max > 0 and math.min(w.max, 10000) or 10000
    if s.state ~= 'current' or s.at ~= -1 or kind == 'keep' or ARGV[5] ~= 'zero' or amount < least then
      why = reason(s, w)
    end
  end
  if why then return {'refused extend ' .. why .. without_ttl(s), answers[ARGV[5]]} end
  local led = s.state ~= 'unmanaged'
  if led and kind == 'keep' and w.max > 0 and s.at >= 0 then
    local left = call('PTTL', k)
    local a = 0
    if ARGV[5] == 'nil' then a = redis.pcall('GET', k) end
    return {'extended reduced ttl=' .. string.format('%.0f', left), a}
  end
  if led then need(s, 'PTTL', w.max > 0 and 'PEXPIRE' or 'PTTL', kind == 'keep' and 'PERSIST' or 'PEXPIREAT') end
  local a = redis.pcall(unpack(ARGV, 6))
  if type(a) == 'table' and a.err or a == 0 or not a then return a end
  if not led or kind == 'keep' and s.at == -1 then return {'-', a} end
  return {'extended' .. follow(s, w, 0), a}
end
