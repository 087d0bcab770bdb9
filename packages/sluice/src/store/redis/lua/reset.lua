--[[ reset: forgets counters
  KEYS     counters and what lies beside them
  ARGV     none
  returns  now_us ]]
include('prelude')
call('DEL', unpack(KEYS))
return { now_us }
