--[[ record: one step with the record of a request id, and no other key: for migrating slots, where a script can have only one key
  KEYS     the record
  ARGV     'see', fingerprint, attempt ('' claims nothing), sent_at_ms (see decide.lua)
                                                                  -> the record, or the code for a conflict or for late, or nothing
           'put', fingerprint, entry id, numbers, receipt         -> 1 written (now or before), 0 there is another
           'drop', entry id, attempt ('' for a refund)            -> 1 dropped: the caller must give its charge back; else 0
  returns  now_ms, the answer ]]
include('prelude')
include('id-record')
local text, step = call('GET', KEYS[1]), ARGV[1]
local dropped_at, dropped_entry = read_tombstone(text or '')
if step == 'see' then
  if dropped_at and ARGV[3] ~= '' and is_late(dropped_at, tonumber(ARGV[4])) then return { now, LATE } end
  if not text or dropped_at then return { now } end
  if read_record(text) ~= ARGV[2] then return { now, CONFLICT } end
  if ARGV[3] ~= '' then call('SET', KEYS[1], claim(text, ARGV[3]), 'KEEPTTL') end
  return { now, text }
end
if step == 'put' then
  -- A put that arrives after its charge was given back must not write a record of it.
  if dropped_entry == ARGV[3] then return { now, 0 } end
  if text and not dropped_at then
    local _, entry = read_record(text)
    return { now, entry == ARGV[3] and 1 or 0 }
  end
  call('SET', KEYS[1], spell_record(ARGV[2], ARGV[3], ARGV[4], ARGV[5]), 'PX', REMEMBER_MS)
  return { now, 1 }
end
return { now, drop_record(KEYS[1], text, ARGV[2], ARGV[3]) and 1 or 0 }
