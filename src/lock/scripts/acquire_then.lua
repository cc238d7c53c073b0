if type(taken) == 'table' and taken.err then return failure(taken) end
local s
local ok, report = pcall(function()
  s = look(KEYS[1], KEYS[2], -2)
  local w = args[2]
  if makings ~= '' then
    w = string.gsub(makings, '^(' .. ('.'):rep(36) .. ')%d+ (%S+) 1 %d+ (%d+)$', '1 %3 0 0 %1 %2 ') .. args[4]
  end
  return grant(s, who(w), KEYS[3])
end)
if ok then return {report, taken} end
undo(KEYS[1], s)
return failure(report)
