package submit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestAllowedImages(t *testing.T) {
	const group, cvmfs = "docker://registry.example.org/physics/*", "/cvmfs/unpacked.cern.ch/**"
	for name, c := range map[string]struct {
		image    string
		patterns []string
		allowed  bool
	}{
		"without patterns every image is":           {"centos", nil, true},
		"an image of the group":                     {"registry.example.org/physics/root:6.32", []string{group}, true},
		"one below the group":                       {"registry.example.org/physics/a/b", []string{group}, false},
		"one of another group":                      {"registry.example.org/chemistry/root", []string{group}, false},
		"one of a registry that begins alike":       {"registry.example.org.evil.org/physics/root", []string{group}, false},
		"one by another transport":                  {"oras://registry.example.org/physics/root", []string{group}, false},
		"a bare name gets the registry first":       {"root", []string{"docker://registry.example.org/root"}, true},
		"any of several patterns":                   {"/cvmfs/unpacked.cern.ch/centos:7", []string{group, cvmfs}, true},
		"anything far below":                        {"/cvmfs/unpacked.cern.ch/registry.hub.docker.com/library/centos:7", []string{cvmfs}, true},
		"the directory itself is not below it":      {"/cvmfs/unpacked.cern.ch/", []string{cvmfs}, false},
		"one whose path begins alike":               {"/cvmfs/unpacked.cern.ch.evil/centos", []string{cvmfs}, false},
		"a file elsewhere":                          {"/eos/user/s/someone/image.sif", []string{cvmfs}, false},
		"anything below a directory with a pattern": {"/cvmfs/unpacked.cern.ch/a/b", []string{"/cvmfs/*.cern.ch/**"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := resolveImage(c.image, "registry.example.org")
			require.NoError(t, err)
			err = allowImage(image, c.patterns, "the administrator of htcd")
			if c.allowed {
				require.NoError(t, err)
				return
			}
			require.Equal(t, condor.Refused, condor.KindOf(err))
			for _, pattern := range c.patterns {
				require.ErrorContains(t, err, pattern)
			}
		})
	}
	_, err := resolveImage("/cvmfs/unpacked.cern.ch/../../etc", "")
	require.Error(t, err, "a path that leaves the directory is refused before")
}

func TestImagePatternsThatCanMatchNothingAreNamed(t *testing.T) {
	require.NoError(t, CheckImagePatterns([]string{"docker://*/*", "/cvmfs/**", "library://sylabs/**"}))
	for _, pattern := range []string{"centos", "docker://[", "http://example.org/*", "*"} {
		require.ErrorContains(t, CheckImagePatterns([]string{pattern}), pattern)
	}
}
