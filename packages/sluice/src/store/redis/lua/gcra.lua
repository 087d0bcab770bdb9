--[[ gcra: one check of one key
  The generic cell rate algorithm keeps the theoretical arrival time of the next cell; the token bucket keeps the missing
  tokens. With deficit = (tat - now) / interval they are the same function (test/twins/oracle.ts checks it against the textbook form),
  so the body is the token bucket's, under a separate letter.
  policy   burst, amount, scale_ms (the emission interval is scale_ms/amount) ]]
include('token-bucket')
