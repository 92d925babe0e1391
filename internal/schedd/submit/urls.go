package submit

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

const (
	maxURL  = 1024    // length of a URL
	maxURLs = 8 << 10 // length of all of one list: the schedd may have to keep it for every proc
)

// An inputURL has no characters that mean something to condor_submit, HTCondor's lists of files, a shell or a macro. A
// user name may stand before the host, but no password.
var (
	inputURLRE = regexp.MustCompile(
		`^([a-z][a-z0-9+.-]{0,31})://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\[\]-]*(/[A-Za-z0-9._~%+=@:!*-]*)+(\?[A-Za-z0-9._~%+=@:!*/?&-]*)?$`,
	)
	landedRE = regexp.MustCompile(`^[A-Za-z0-9_%][A-Za-z0-9._~%+=@:!*-]*$`)
	// An outputURL is also an entry in a list that HTCondor splits at ; = and blanks.
	outputURLRE = regexp.MustCompile(
		`^[a-z][a-z0-9+.-]{0,31}://([A-Za-z0-9._-]+@)?[A-Za-z0-9._:\[\]-]*(/([A-Za-z0-9._~%+@:!*-]|\{(namespace|name|attempt|jobid|proc)\})*)+$`,
	)
	schemeRE = regexp.MustCompile(
		`^[a-z][a-z0-9]{0,31}$`,
	) // what stands before a + or - or . is no part of it to HTCondor
)

// CheckSchemes refuses schemes that no HTCJob may use. A file: URL would name a file of the execute node, which other
// users' jobs or the node's own account may have.
func CheckSchemes(schemes []string) error {
	for _, scheme := range schemes {
		switch {
		case !schemeRE.MatchString(scheme):
			return fmt.Errorf("%q: expected a scheme such as https", scheme)
		case scheme == "file":
			return fmt.Errorf("file names files of the execute node itself: it is never allowed")
		}
	}
	return nil
}

// checkScheme refuses a URL whose scheme the site does not allow.
func (d Description) checkScheme(url string) error {
	_, scheme := schemeOf(url)
	if scheme != "file" && slices.Contains(d.AllowSchemes, scheme) {
		return d.checkToken(url)
	}
	if len(d.AllowSchemes) == 0 {
		return condor.Refusal("%s: this site allows no URLs (--allow-url-schemes)", url)
	}
	return condor.Refusal(
		"%s: this site allows the schemes %s (--allow-url-schemes)",
		url,
		strings.Join(d.AllowSchemes, ", "),
	)
}

// checkInputURLs refuses URLs that could do more than name a file, and those that HTCondor would put where another file
// is.
func (d Description) checkInputURLs() error {
	landed := map[string]string{}
	size := 0
	for _, in := range d.Inputs {
		if in.URL == "" {
			landed[in.Name] = in.Name
		}
	}
	for _, in := range d.Inputs {
		if in.URL == "" || in.OfProc {
			continue
		}
		if err := d.checkInputURL(in, landed); err != nil {
			return err
		}
		size += len(in.URL) + 1
	}
	if size > maxURLs {
		return condor.Refusal(
			"spec.inputs: expected URLs of at most 8 KiB together, found %d bytes: let the script fetch what a list names",
			size,
		)
	}
	return d.checkOwnURLs(landed, size)
}

// checkInputURL refuses the URL of an input, and names its file among those that have landed.
func (d Description) checkInputURL(in Input, landed map[string]string) error {
	if len(in.URL) > maxURL || !inputURLRE.MatchString(in.URL) {
		return condor.Refusal(
			"spec.inputs: %s: url %q: expected scheme://host/path of at most %d letters, digits and _ . ~ %% + = @ : ! * - /, without a password; write other characters as %%XX",
			in.Name,
			condor.Clip(in.URL),
			maxURL,
		)
	}
	if err := d.checkScheme(in.URL); err != nil {
		return condor.Refusal("spec.inputs: %s: %w", in.Name, err)
	}
	file := in.landed()
	if !landedRE.MatchString(file) || slices.Contains(takenFiles, file) || strings.HasPrefix(file, "_condor") {
		return condor.Refusal(
			"spec.inputs: %s: url %q: HTCondor fetches it to a file called as the last part of its path, and %q is no name for one here",
			in.Name,
			in.URL,
			file,
		)
	}
	if other, taken := landed[file]; taken {
		return condor.Refusal(
			"spec.inputs: %s: url %q: HTCondor fetches it to the file %s, which is also the file of the input %s: fetch one of them in the script, or under another name",
			in.Name,
			in.URL,
			file,
			other,
		)
	}
	landed[file] = in.Name
	return nil
}

// landed is the name under which HTCondor puts the file of a URL.
func (in Input) landed() string {
	url, _, _ := strings.Cut(in.URL, "?")
	return path.Base("/" + url[strings.LastIndexByte(url, '/')+1:])
}

// sameURLs lists the URLs that all procs get.
func (d Description) sameURLs() []string {
	var urls []string
	for _, in := range d.Inputs {
		if in.URL != "" && !in.OfProc {
			urls = append(urls, in.URL)
		}
	}
	return urls
}

// inputMoves lists the inputs of all procs that HTCondor puts under other names, as name/othername.
func (d Description) inputMoves() string {
	var moves []string
	for _, in := range d.Inputs {
		if in.URL != "" && !in.OfProc && in.landed() != in.Name {
			moves = append(moves, in.Name+"/"+in.landed())
		}
	}
	return strings.Join(moves, " ")
}

// outputRemaps is the command that says where HTCondor writes output files.
const outputRemaps = "transfer_output_remaps"

// checkOutputURLs refuses URLs that could do more than name a file, and those to which several jobs would write.
func (d Description) checkOutputURLs() error {
	seen := map[string]bool{}
	for _, o := range d.Outputs {
		switch {
		case o.URL == "":
			continue
		case len(o.URL) > maxURL || !outputURLRE.MatchString(o.URL) || strings.Contains(o.URL, "/..") || strings.HasSuffix(o.URL, "/"):
			return condor.Refusal(
				"spec.outputs: %s: url %q: expected scheme://host/path of at most %d letters, digits and _ . ~ %% + @ : ! * -, with {namespace}, {name}, {attempt} and {proc}, without a password or a query",
				o.Path,
				condor.Clip(o.URL),
				maxURL,
			)
		case strings.ContainsAny(o.Path, "*?[]"):
			return condor.Refusal(
				"spec.outputs: %s: expected the path of one file beside a url: make a directory's files one archive",
				o.Path,
			)
		case d.Queue > 1 && !strings.Contains(o.URL, "{proc}"):
			return condor.Refusal(
				"spec.outputs: %s: url %q: expected {proc} in it: all %d jobs would write to the same place",
				o.Path,
				o.URL,
				d.Queue,
			)
		case seen[o.URL]:
			return condor.Refusal("spec.outputs: %s: url %q: another output has the same", o.Path, o.URL)
		}
		if err := d.checkScheme(o.URL); err != nil {
			return condor.Refusal("spec.outputs: %s: %w", o.Path, err)
		}
		seen[o.URL] = true
	}
	if n := len(d.outputRemaps(procNumber)); n > maxURLs {
		return condor.Refusal("spec.outputs: expected URLs of at most 8 KiB together, found %d bytes", n)
	}
	return nil
}

// outputRemaps tells HTCondor to write files below dirOutputs, which the wrapper calls by their numbers, to their URLs.
// The schedd keeps such remaps apart from those for condor_transfer_data. proc is the macro with the job's number; the
// jobid is that of a node.
func (d Description) outputRemaps(proc string) string {
	var remaps []string
	for i, o := range d.Outputs {
		if o.URL != "" {
			url := strings.ReplaceAll(d.Tag.Destination(o.URL, proc), "{jobid}", nodeJobID)
			remaps = append(remaps, fmt.Sprintf("%s/.url/%d = %s", dirOutputs, i, url))
		}
	}
	return strings.Join(remaps, "; ")
}

// sentOutputs lists the numbers of the outputs with URLs, each between blanks.
func (d Description) sentOutputs() string {
	return d.numbersOf(func(o Output) bool { return o.URL != "" })
}

// bothOutputs lists the numbers of those that are brought back, too.
func (d Description) bothOutputs() string {
	return d.numbersOf(func(o Output) bool { return o.Both })
}

func (d Description) numbersOf(such func(Output) bool) string {
	numbers := " "
	for i, o := range d.Outputs {
		if such(o) {
			numbers += fmt.Sprint(i, " ")
		}
	}
	return numbers
}
