--[[ held: how many units of a counter holders have prefetched, from its grants alone: for a slot that is being migrated (held-elsewhere.ts)
  KEYS     the grants of the counter (grants.lua)
  ARGV     none
  returns  units of all holders; in how many ms the earliest of them expire, below 1 if some have; how often any of it changed ]]
include('prelude')
include('grants-head')
local head = call('HGET', KEYS[1], '')
if not head then return { 0, 0, 0 } end
local total, ends, changes = read_head(head)
return { total, ends - now, changes }
