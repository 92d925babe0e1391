package submit

import (
	"regexp"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Credential is a file with a secret that a job gets in its directory of credentials.
type Credential struct {
	Name     string
	Variable string // of the script's environment that has the file's path; empty: none
	Content  string
	Registry bool // it is the login for the registry of the image, which the script does not get
}

// fileCredential begins the name under which a credential travels; in the job the wrapper moves it out of what HTCondor
// brings back. In the staging directory it stays until the schedd has it.
const fileCredential = ".credential-" // #nosec G101 -- the beginning of a file name

// variableCredentials has the path of the directory of credentials.
const variableCredentials = "HTC_CREDENTIALS" // #nosec G101 -- the name of a variable

var (
	credentialRE    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	credentialVarRE = regexp.MustCompile(`^([A-Z][A-Z0-9_]{0,63})?$`)
)

// Limits of a run's credentials: every proc spools its own copy.
const (
	MaxCredentials    = 16
	MaxCredentialSize = 64 << 10
)

func (d Description) checkCredentials() error {
	if len(d.Credentials) > MaxCredentials {
		return condor.Refusal("spec.credentials: expected at most %d, found %d", MaxCredentials, len(d.Credentials))
	}
	if len(d.Credentials) > 0 && d.Environment[variableCredentials] != "" {
		return condor.Refusal(
			"spec.environment: the variable %s is set by htcd because of spec.credentials",
			variableCredentials,
		)
	}
	names, variables := map[string]bool{}, map[string]bool{}
	for _, c := range d.Credentials {
		switch _, own := d.Environment[c.Variable]; {
		case !credentialRE.MatchString(c.Name):
			return condor.Refusal(
				"spec.credentials: expected a name of at most 64 letters, digits and _ . -, which begins with a letter, a digit or _, found %q",
				condor.Clip(c.Name),
			)
		case names[c.Name]:
			return condor.Refusal("spec.credentials: %s is there twice", c.Name)
		case !credentialVarRE.MatchString(c.Variable):
			return condor.Refusal("spec.credentials: %s cannot be the path of a file", c.Variable)
		case c.Variable != "" && variables[c.Variable]:
			return condor.Refusal("spec.credentials: two have their path in %s: use File for one of them", c.Variable)
		case own:
			return condor.Refusal(
				"spec.environment: the variable %s is set by htcd because of the credential %s",
				c.Variable,
				c.Name,
			)
		case len(c.Content) > MaxCredentialSize:
			return condor.Refusal("spec.credentials: %s has %d bytes, expected at most 64 KiB", c.Name, len(c.Content))
		}
		names[c.Name], variables[c.Variable] = true, true
	}
	if d.PullURL != "" && (!strings.HasPrefix(d.PullURL, "https://") || !urlRE.MatchString(d.PullURL)) {
		return condor.Refusal("URL of credentials %q: expected https://", d.PullURL)
	}
	return nil
}

// credentialFiles returns the first copies.
func (d Description) credentialFiles() []File {
	var files []File
	for _, c := range d.Credentials {
		files = append(files, File{Name: fileCredential + c.Name, Mode: 0o600, Content: c.Content})
	}
	return files
}

// credentialWords lists the credentials for the wrapper: "atlas:X509_USER_PROXY eos:".
func (d Description) credentialWords() string {
	var words []string
	for _, c := range d.Credentials {
		words = append(words, c.Name+":"+c.Variable)
	}
	return strings.Join(words, " ")
}

// registryLogin returns the name of the login for the registry of the image; empty: there is none.
func (d Description) registryLogin() string {
	for _, c := range d.Credentials {
		if c.Registry {
			return c.Name
		}
	}
	return ""
}
