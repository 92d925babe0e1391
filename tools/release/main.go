// Command release makes the archive of htcd's image that a release has: an OCI image layout for several architectures,
// signed in cosign's format.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

const usage = `usage:
  release layout -version V -created SECONDS [-key FILE -image NAME] DIR ARCHIVE...
        writes an OCI image layout to DIR, of archives in the format of docker save, one for each architecture,
        and prints the digest of its index
  release sign -key FILE DIR NAME
        signs DIR/NAME: writes NAME.sig and cosign.pub beside it
  release push ARCHIVE NAME:TAG
        copies a layout, or a tar of one, to a registry, with the signatures; the registry's login is docker's
The password of a key is in COSIGN_PASSWORD.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		if errors.Is(err, errArguments) {
			fmt.Fprint(os.Stderr, usage)
		}
		os.Exit(1)
	}
}

var errArguments = errors.New("wrong arguments")

func run(args []string) error {
	if len(args) == 0 {
		return errArguments
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := flags.String("version", "", "tag of the image in the layout")
	created := flags.Int64("created", 0, "time of everything in it")
	keyFile := flags.String("key", "", "private key to sign with")
	image := flags.String("image", "", "where the image will be; part of what is signed")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	rest := flags.Args()
	var signer *key
	if *keyFile != "" {
		var err error
		if signer, err = readKey(*keyFile, []byte(os.Getenv("COSIGN_PASSWORD"))); err != nil {
			return err
		}
	}
	switch {
	case args[0] == "layout" && len(rest) >= 2 && *version != "" && (signer == nil) == (*image == ""):
		index, err := imageIndex(rest[1:], time.Unix(*created, 0).UTC())
		if err != nil {
			return err
		}
		if err := writeLayout(rest[0], *version, index, signer, *image); err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		fmt.Println(digest)
		return nil
	case args[0] == "sign" && len(rest) == 2 && signer != nil:
		return signFile(rest[0], rest[1], signer)
	case args[0] == "push" && len(rest) == 2:
		return push(rest[0], rest[1])
	}
	return errArguments
}
