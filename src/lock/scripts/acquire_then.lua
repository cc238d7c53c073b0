if type(taken) == 'table' and taken.err then return failure(taken) end
local ok, report = pcall(function() return grant(look(KEYS[1], KEYS[2], -2), who(ARGV[1]), KEYS[3]) end)
if ok then return {report, taken} end
-- Without its record the lock would be nobody's.
redis.pcall('DEL', KEYS[1])
return failure(report)
