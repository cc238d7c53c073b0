if type(taken) == 'table' and taken.err then return failure(taken) end
local s
local ok, report = pcall(function()
  s = look(KEYS[1], KEYS[2], -2)
  return grant(s, who(ARGV[1]), KEYS[3])
end)
if ok then return {report, taken} end
undo(KEYS[1], s)
return failure(report)
