// Package token keeps HTCondor's IDTOKENS where its tools find them: each in a directory of its own, since a tool takes
// whichever token it finds in SEC_TOKEN_DIRECTORY that the schedd may like.
//
// A token is a JWT (RFC 7519) that the pool's administrator made with condor_token_create and signed with a key that only
// the pool has. What is read of it here (whose it is, when it ends) says what is wrong with a Secret before any
// command does; nothing is believed because of it. The schedd alone decides who comes with a token.
//
// HTCondor reads a token's file when it is owned by the user who runs the tool and nobody else may read it
// (read_secure_file of HTCondor's sources), and knows it by its issuer, the pool's TRUST_DOMAIN, and by its key's name, kid.
//
// The token is in no argument, environment, log line, error or name of a file.
package token
