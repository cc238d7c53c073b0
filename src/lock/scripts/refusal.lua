-- What Redis answers when the key is not there.
local answers = {zero = 0, ['nil'] = false, nokey = {err = 'ERR no such key'}, NOKEY = {ok = 'NOKEY'}}

-- Whether the condition of a command that would remove the lock holds: NX, XX, GT, LT of an expiry in the past, or
-- that the value is another.
local function holds(s, flags, value)
  if flags == '-' then return true end
  if flags == 'ifne' then return s.at == -2 or call('GET', s.k) ~= value end
  if flags == 'ifdne' then return s.at == -2 or call('DIGEST', s.k) ~= value end
  if s.at == -2 then return false end
  return not (string.find(flags, 'n') and s.at >= 0 or string.find(flags, 'x') and s.at == -1
    or string.find(flags, 'g'))
end

-- Gives the lock up by the command that starts at ARGV[first], if the accounting says so.
local function remove(s, w, refusal, flags, value, first)
  if not holds(s, flags, value) then return answers[refusal] end
  if s.at == -2 then
    local a = redis.pcall(unpack(ARGV, first))
    local _, report = release(s, w)
    return {report, a}
  end
  need(s, 'DEL', 'EXISTS', 'HDEL', 'PEXPIREAT')
  local go, report = release(s, w)
  if not go then return {report, answers[refusal]} end
  local a = redis.pcall(unpack(ARGV, first))
  if call('EXISTS', s.k) == 1 then return a end
  removed(s)
  return {report, a}
end
