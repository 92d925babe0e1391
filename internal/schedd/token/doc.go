// Package token keeps HTCondor's IDTOKENS, and SciTokens, where its tools find them. Each is in a directory of its own,
// because a tool uses any token in SEC_TOKEN_DIRECTORY that the schedd might accept.
//
// A token is a JWT (RFC 7519). An IDTOKEN was made by the pool's administrator with condor_token_create and signed with
// a key that only the pool has. A SciToken, or a token of WLCG's profile, is from an issuer whose URL is its iss; the
// pool gets the issuer's public keys and maps iss and sub to an account. Subject and expiry are read here only to
// report a problem with a Secret before a command fails; nothing relies on them. Only the schedd decides whose a token
// is.
//
// HTCondor reads an IDTOKEN's file only if it belongs to the user who runs the tool and nobody else may read it
// (read_secure_file in HTCondor's sources). It selects an IDTOKEN by its issuer, the pool's TRUST_DOMAIN, and by its
// key id, kid. A SciToken is named by SCITOKENS_FILE, and shown only to a server whose host certificate is trusted.
//
// The token never appears in an argument, environment, log line, error or file name.
package token
