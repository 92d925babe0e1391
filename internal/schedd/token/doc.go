// Package token keeps HTCondor's IDTOKENS where its tools find them. Each is in a directory of its own, because a tool uses
// any token in SEC_TOKEN_DIRECTORY that the schedd might accept.
//
// A token is a JWT (RFC 7519) that the pool's administrator made with condor_token_create and signed with a key that only
// the pool has. Its subject and expiry are read here only to report a problem with a Secret before a command fails;
// nothing relies on them. Only the schedd decides whose a token is.
//
// HTCondor reads a token's file only if it belongs to the user who runs the tool and nobody else may read it
// (read_secure_file in HTCondor's sources). It selects a token by its issuer, the pool's TRUST_DOMAIN, and by its key id, kid.
//
// The token never appears in an argument, environment, log line, error or file name.
package token
