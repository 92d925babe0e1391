package setting

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Kind is what a flag's value may be.
type Kind struct {
	Want  string             // what is allowed, for people
	Check func(string) error // says what is wrong, naming the value

	empty bool
}

// errWrong is what Check returns if Want says everything.
var errWrong = errors.New("not of this kind")

// Is is a kind whose Want says everything.
func Is(want string, is func(string) bool) Kind {
	return Kind{Want: want, Check: func(text string) error {
		if !is(text) {
			return errWrong
		}
		return nil
	}}
}

func valid(check func(string) []string) func(string) bool {
	return func(text string) bool { return len(check(text)) == 0 }
}

var (
	// Namespace is a namespace's name.
	Namespace = Is("a namespace's name: at most 63 small letters, digits and -", valid(validation.IsDNS1123Label))
	// Object is the name of an object of Kubernetes.
	Object = Is("an object's name: at most 253 small letters, digits, - and .", valid(validation.IsDNS1123Subdomain))
	// Label is what a label's value may be.
	Label = Is("at most 63 letters, digits, -, _ and .", valid(validation.IsValidLabelValue))
	// Place is the path of a file or directory that must be the same wherever htcd is started.
	Place = Is("an absolute path", func(text string) bool { return filepath.IsAbs(text) && printable(text) })
	// Path is the path of a file or directory.
	Path = Is("a path without line breaks and control characters", printable)
	// Word is text on one line.
	Word = Is("text on one line", printable)
	// HostPort is a host and perhaps a port.
	HostPort = Is("host or host:port", func(text string) bool {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			return isHost(strings.Trim(text, "[]"))
		}
		return isHost(host) && isPort(port, 1)
	})
	// Address is where a server listens; port 0 is any that is free.
	Address = Is("host:port or :port, with a port from 0 to 65535", func(text string) bool {
		host, port, err := net.SplitHostPort(text)
		return err == nil && (host == "" || isHost(host)) && isPort(port, 0)
	})
)

// URL is a kind of URL by http or https whose path has this ending. It has no user, password, query or fragment.
func URL(ending string) Kind {
	want := "http://host:port" + ending + " or https://host:port" + ending + ", without user, password, query and fragment"
	return Kind{Want: want, Check: func(text string) error {
		u, err := url.Parse(text)
		if err != nil || !printable(text) {
			return &wrong{value: "what is no URL", want: want} // it may hold a password
		}
		right := (u.Scheme == "http" || u.Scheme == "https") && isHost(u.Hostname()) && strings.HasSuffix(u.EscapedPath(), ending) &&
			(u.Port() == "" && !strings.HasSuffix(u.Host, ":") || isPort(u.Port(), 1)) &&
			u.User == nil &&
			!strings.ContainsAny(text, "?#")
		if !right {
			return &wrong{value: u.Redacted(), want: want}
		}
		return nil
	}}
}

func isHost(text string) bool {
	return net.ParseIP(text) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(text))) == 0
}

func isPort(text string, least int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= least && n <= 65535 && text == strconv.Itoa(n)
}

// printable reports whether a text is a line of characters that a terminal shows as they are.
func printable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
