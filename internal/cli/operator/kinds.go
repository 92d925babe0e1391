package operator

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"oras.land/oras-go/v2/registry"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/serve/control"
)

// MostJobs is far more than a schedd holds.
const MostJobs = 100_000_000

// Year is longer than anything here takes.
const Year = 365 * 24 * time.Hour

// The kinds of flags that only administrators' commands have.
var (
	TableJSON = setting.OneOf("table", "json")

	Holder = setting.Is("at most 253 letters, digits and signs without blanks", func(text string) bool {
		return len(text) <= 253 && setting.Word.Check(text) == nil && !strings.Contains(text, " ")
	})
	ImageRegistry = setting.Is(
		"host, host:port or either with a path of small letters, such as registry.example.org/group",
		func(text string) bool {
			_, err := registry.ParseReference(strings.TrimSuffix(text, "/") + "/image")
			return err == nil && !strings.Contains(text, "@")
		},
	)
	PodImage = setting.Is("an image's name, such as registry.example.org/group/htcd:1", func(text string) bool {
		_, whole := registry.ParseReference(text)
		_, below := registry.ParseReference("docker.io/" + text)
		return whole == nil || below == nil
	})
	Bind = setting.Is("an absolute path without spaces, quotes, commas, colons and \\", func(text string) bool {
		return setting.Place.Check(text) == nil && !strings.ContainsAny(text, " '\",:\\") && path.Clean(text) == text
	})
	Socket = setting.Is(fmt.Sprintf("an absolute path of at most %d bytes", control.MaxPath), func(text string) bool {
		return setting.Place.Check(text) == nil && len(text) <= control.MaxPath
	})
	Realm = setting.Is("a realm such as EXAMPLE.ORG", func(text string) bool {
		return setting.Word.Check(text) == nil && !strings.ContainsAny(text, "@/\\ ")
	})
	ScheddName = setting.Is("a schedd's name, such as bigbird10.cern.ch or name@host", schedd.IsScheddName)
	FeedClient = setting.Is(
		"NAME=OWNER, the common name of a certificate and an account, or * for all accounts",
		func(text string) bool {
			name, account, both := strings.Cut(text, "=")
			return both && setting.Word.Check(name) == nil && setting.Word.Check(account) == nil &&
				!strings.ContainsAny(account, " =\"\\")
		},
	)
	Feed = setting.Is("SCHEDD=https://host:port, or COLLECTOR/SCHEDD=https://host:port", func(text string) bool {
		name, url, both := strings.Cut(text, "=https://")
		host, port, split := strings.Cut(url, ":")
		return both && split && host != "" && schedd.CheckEndpointPatterns([]string{name}) == nil &&
			!strings.ContainsAny(name, "*?") &&
			(setting.Address.Check(url) == nil && port != "0")
	})
	SiteCommand = setting.Is("an absolute path, and arguments", func(text string) bool {
		return setting.Place.Check(text) == nil
	})
	Schedule = setting.Is(
		"cron's five fields, such as \"* * * * *\", or @every and at least 1s, such as \"@every 30s\", with a next time",
		comesToPass,
	)
)

// The kinds whose packages say themselves what is wrong with a word.
var (
	AllowedOption = setting.Kind{
		Want:  "a submit command or +Attribute that htcd does not set itself",
		Check: oneByOne(submit.CheckAllow),
	}
	Attribute = setting.Kind{
		Want:  "the name of an attribute that HTCondor does not act upon, in which * stands for anything, such as Lab*",
		Check: oneByOne(submit.CheckAttributes),
	}
	Scheme       = setting.Kind{Want: "a scheme such as https, but not file", Check: oneByOne(submit.CheckSchemes)}
	ImagePattern = setting.Kind{
		Want:  "a pattern such as docker://registry.example.org/group/* or /cvmfs/unpacked.cern.ch/**",
		Check: oneByOne(submit.CheckImagePatterns),
	}
	Endpoint = setting.Kind{
		Want:  "SCHEDD or COLLECTOR/SCHEDD, where * stands for anything",
		Check: oneByOne(schedd.CheckEndpointPatterns),
	}
	RegistryHost = setting.Kind{
		Want: "host, host:port or *.domain, with http:// in front for one without TLS",
		Check: func(text string) error {
			_, err := artifact.ParseRegistries([]string{text})
			return err
		},
	}
)

func oneByOne(check func([]string) error) func(string) error {
	return func(text string) error { return check([]string{text}) }
}

// comesToPass reports whether a text is a schedule with a next time. The parser rounds what is below 1 s up, and panics
// at a zone alone.
func comesToPass(text string) bool {
	if strings.Contains(text, "TZ=") && !strings.Contains(text, " ") {
		return false
	}
	if every, is := strings.CutPrefix(text, "@every "); is {
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return false
		}
	}
	times, err := cron.ParseStandard(text)
	return err == nil && !times.Next(time.Now()).IsZero()
}
