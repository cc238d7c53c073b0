-- COPY … REPLACE onto a lock key of another database: only if it is free there. KEYS: target, source. ARGV: that
-- database; the selected one; the command.
local function main()
  call('SELECT', ARGV[1])
  local there = call('EXISTS', KEYS[1])
  call('SELECT', ARGV[2])
  if there == 1 then return {'refused overwrite foreign', held(KEYS[1])} end
  return redis.pcall(unpack(ARGV, 3))
end
