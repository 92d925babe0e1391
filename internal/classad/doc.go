// Package classad reads and prints HTCondor's ClassAds: values, expressions and ads, as condor_q and condor_history
// print them (-long and -json) and as people write them into submit descriptions. It evaluates nothing.
//
// An Ad keeps literals as values and everything else as text, which is parsed only on demand: reading the ads of a
// hundred thousand jobs must neither depend on what their owners wrote into their requirements, nor cost the parsing of
// it.
//
// Expressions are HTCondor's "new" ClassAd language with the liberties of the "old" one (TARGET and MY scopes, =?= and
// =!=, is and isnt, true and undefined in any case).
package classad
