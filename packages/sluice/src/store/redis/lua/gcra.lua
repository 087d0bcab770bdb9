--[[ gcra: one check of one key
  The generic cell rate algorithm keeps the theoretical arrival time of the next cell; the token bucket keeps the missing
  tokens. With deficit = (tat - now) / interval they are one function (test/twins/oracle.ts holds it against the textbook form),
  so the body is the token bucket's, under a letter of its own.
  policy   burst, amount, scale_ms (the emission interval is scale_ms/amount) ]]
include('token-bucket')
