package site

import (
	"strings"
	"unicode"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// maxCreator bounds what the ads say of a creator.
const maxCreator = 256

// CreatorOf returns who has created the object with these annotations, as it goes into the ads; empty if the annotation
// is not protected here. Names of users come from wherever the cluster authenticates them: what would mean something to
// HTCondor's submit language is replaced.
func (s Site) CreatorOf(annotations map[string]string) string {
	if !s.TrustCreator {
		return ""
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`"$\\`, r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, annotations[v1alpha1.CreatorAnnotation])
	return strings.ToValidUTF8(name[:min(len(name), maxCreator)], "")
}
