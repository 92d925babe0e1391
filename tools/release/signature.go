package main

import (
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What cosign calls its parts (its specs/SIGNATURE_SPEC.md).
const (
	payloadType         = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// payload is what is signed: containers-signature(5) of containers/image, with cosign's type.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// signatureTag returns the tag under which cosign looks for the signatures of what has the digest.
func signatureTag(digest v1.Hash) string { return digest.Algorithm + "-" + digest.Hex + ".sig" }

// signatureOf returns the image that holds a signature: its only layer is the payload.
func signatureOf(digest v1.Hash, image string, signer *key) (v1.Image, error) {
	var p payload
	p.Critical.Identity.Reference = image
	p.Critical.Image.Digest = digest.String()
	p.Critical.Type = "cosign container image signature"
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	signature, err := signer.sign(text)
	if err != nil {
		return nil, err
	}
	holder := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(holder, mutate.Addendum{
		Layer:       static.NewLayer(text, payloadType),
		Annotations: map[string]string{signatureAnnotation: signature},
	})
}
