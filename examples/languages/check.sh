#!/bin/sh
# Three requests of one user, under a limit of two a minute: sh check.sh
server=${SLUICE_SERVER:-http://127.0.0.1:8080}

# Prints the decision. Asks twice at most: the id makes the second try safe, one request is charged once.
check() {
  id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  body="{\"attributes\":{\"user\":\"$1\"},\"id\":\"$id\"}"
  ask "$body" || ask "$body"
}

ask() {
  curl --silent --fail --max-time "${SLUICE_TIMEOUT:-1}" --header 'content-type: application/json' \
    ${SLUICE_API_TOKEN:+--header "authorization: Bearer $SLUICE_API_TOKEN"} --data "$1" "$server/v1/check"
}

# A field of the decision itself: those of single rules come later, behind the first bracket.
field() {
  printf %s "$decision" | sed -E "s/^[^[]*\"$1\":\"?([^\",]+).*/\\1/"
}

for _ in 1 2 3; do
  if ! decision=$(check 42); then
    # No answer is not a refusal: this script goes on. Curl's exit status 22 is an answer that is no decision.
    echo "not asked, passes"
  elif [ "$(field allowed)" = true ]; then
    echo "allowed, $(field remaining) left"
  else
    echo "refused by $(field rule)"
  fi
done
