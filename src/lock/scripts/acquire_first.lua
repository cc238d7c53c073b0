-- KEYS: lock, record, fence key if wanted. ARGV: caller, the command. A refused acquire ends here.
local taken = redis.pcall(unpack(ARGV, 2))
if taken ~= 1 and not (type(taken) == 'table' and taken.ok) then return taken end
