package submit

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

//go:embed plugin.sh
var pluginBody string

// HTCondor gives its transfer plugins no credential of a spooled job: X509_USER_PROXY is set only after a delegation,
// which the shadow does not make for files in the spool (23.9, 25.14), and tokens come only from a condor_credd. So a
// job whose URLs need a credential brings a plugin of its own for each of their schemes, plugin.sh, which runs the
// node's plugin with the job's credentials.

// filePlugin begins the name of such a plugin; the scheme follows.
const filePlugin = ".htcd-plugin-"

// The variables in which programs look for a proxy and for a token.
const (
	variableProxy  = "X509_USER_PROXY"
	variableBearer = "BEARER_TOKEN_FILE" // #nosec G101 -- a name
)

// bearerRE matches the names of credentials that a URL can name: HTCondor's plugins take letters before a + for one.
var bearerRE = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// schemeOf returns a URL's scheme, and the credential that is named before it: wlcg+https://host/path has the token
// wlcg.
func schemeOf(url string) (credential, scheme string) {
	scheme, _, _ = strings.Cut(url, "://")
	if before, after, named := strings.Cut(scheme, "+"); named {
		return before, after
	}
	return "", scheme
}

// credentialFor returns the name of the credential whose path is in a variable; empty: there is none.
func (d Description) credentialFor(variable string) string {
	for _, c := range d.Credentials {
		if c.Variable == variable {
			return c.Name
		}
	}
	return ""
}

// checkToken refuses a URL that names a token which the job does not have.
func (d Description) checkToken(url string) error {
	credential, scheme := schemeOf(url)
	if credential == "" || credential == d.credentialFor(variableBearer) && bearerRE.MatchString(credential) {
		return nil
	}
	return condor.Refusal(
		"%s: %s before the + is not the name, of lower-case letters and digits, of a credential in spec.credentials with as: BearerToken: "+
			"give the HTCJob that token, or write %s:// and use a URL that needs none, such as a presigned one",
		url,
		credential,
		scheme,
	)
}

// outputURLs lists the URLs among the outputs.
func (d Description) outputURLs() []string {
	var urls []string
	for _, o := range d.Outputs {
		if o.URL != "" {
			urls = append(urls, o.URL)
		}
	}
	return urls
}

// pluginSchemes lists the schemes for which the job brings a plugin.
func (d Description) pluginSchemes() []string {
	var schemes []string
	needed := d.credentialFor(variableProxy) != ""
	for _, url := range append(d.inputURLs(), d.outputURLs()...) {
		credential, scheme := schemeOf(url)
		needed = needed || credential != ""
		schemes = append(schemes, scheme)
	}
	if !needed {
		return nil
	}
	slices.Sort(schemes)
	return slices.Compact(schemes)
}

// pluginFiles returns the plugins that the job brings.
func (d Description) pluginFiles() []File {
	var files []File
	for _, scheme := range d.pluginSchemes() {
		var b strings.Builder
		b.WriteString("#!/bin/sh\n")
		for _, v := range [][2]string{
			{"scheme", scheme}, {"proxy", d.credentialFor(variableProxy)}, {"bearer", d.credentialFor(variableBearer)},
			{"credentials", d.credentialWords()}, {"pull", d.PullURL}, {"ca", strings.TrimSuffix(d.CallbackCA, "\n")}, {"also", d.alsoTrusted()},
		} {
			b.WriteString(v[0] + "=" + ShellQuote(v[1]) + "\n")
		}
		files = append(
			files,
			File{Name: filePlugin + scheme, Mode: 0o755, Content: b.String() + credentialsBody + pluginBody},
		)
	}
	return files
}

// writingPlugins lists the plugins that run again after the script has ended.
func (d Description) writingPlugins() string {
	if len(d.outputURLs()) == 0 {
		return ""
	}
	var names []string
	for _, scheme := range d.pluginSchemes() {
		names = append(names, filePlugin+scheme)
	}
	return strings.Join(names, " ")
}

// transferPlugins is the submit command's value: "https=.htcd-plugin-https; root=.htcd-plugin-root". They lie in the
// initialdir, as HTCondor 25 starts them under the path that the schedd has for them.
func (d Description) transferPlugins() string {
	var all []string
	for _, scheme := range d.pluginSchemes() {
		all = append(all, scheme+"="+filePlugin+scheme)
	}
	return strings.Join(all, "; ")
}

// takesPlugins is true of a machine that runs the plugins of jobs: from HTCondor 25.11 on
// STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS, an expression that the machine's ad has, can be 1 or 2 for some jobs
// or for all; earlier machines do not have it.
const takesPlugins = "(TARGET.HasDisableUserTransferPlugins ?: 0) == 0"

// onNodesWithPlugins adds to the requirements that a node takes the plugins that a job brings, and has plugins of its
// own: condor_submit asks for neither.
func (d Description) onNodesWithPlugins(options []option) ([]option, error) {
	var conditions []string
	for _, scheme := range d.pluginSchemes() {
		conditions = append(
			conditions,
			fmt.Sprintf("stringListIMember(%s, TARGET.HasFileTransferPluginMethods)", classad.Quote(scheme)),
		)
	}
	if len(conditions) == 0 {
		return options, nil
	}
	all := strings.Join(append(conditions, takesPlugins), " && ")
	if users, there := value(options, "requirements"); there {
		both, err := joined("&&", all, users)
		if err != nil {
			return nil, condor.Refusal("requirements: %w", err)
		}
		all = both
	}
	return replace(options, "requirements", all), nil
}
