package ui

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"htc.cern.ch/htcd/internal/schedd/plaintext"
)

// which are the parameters by which a job or a node is named to htcd.
var which = []string{"proc", "step", "sequence", "index", "attempt"}

func chosen(q url.Values, names ...string) url.Values {
	p := url.Values{}
	for _, name := range names {
		if q.Has(name) {
			p.Set(name, q.Get(name))
		}
	}
	return p
}

func requestedOf(r *http.Request) ref {
	return ref{kind(r.PathValue("kind")), r.PathValue("namespace"), r.PathValue("name")}
}

// logView is the page that shows a stream while it grows.
type logView struct {
	ref
	Back, Text, Other      string
	Who, Stream, OtherName string
}

// lastLines is how many lines of a log are shown of what was written before.
const lastLines = "5000"

func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	to, q := requestedOf(r), r.URL.Query()
	v := logView{ref: to, Stream: "stdout", OtherName: "stderr"}
	if q.Get("stream") == "stderr" {
		v.Stream, v.OtherName = v.OtherName, v.Stream
	}
	p := chosen(q, which...)
	v.Back = linkTo(to) + "?" + p.Encode()
	for _, name := range []string{"proc", "step", "sequence", "index"} {
		if p.Has(name) {
			v.Who += fmt.Sprintf(" %s %s", name, p.Get(name))
		}
	}
	address := func(stream string) string {
		p.Set("stream", stream)
		return linkTo(to) + "?" + p.Encode()
	}
	v.Text, v.Other = "/logtext"+address(v.Stream), "/log"+address(v.OtherName)
	v.Text = s.guard.base + v.Text
	s.page(w, r, page{Title: to.Name + v.Who, main: s.base().log(v)}, to.Kind)
}

// logText sends a stream as it grows, with its control characters as text.
func (s *Server) logText(w http.ResponseWriter, r *http.Request) {
	to := requestedOf(r)
	p := chosen(r.URL.Query(), slices.Concat(which, []string{"stream"})...)
	p.Set("follow", "true")
	p.Set("tailLines", lastLines)
	answer, err := s.o.Output(r.Context(), to.Namespace, to.resource(), to.Name, "log", p)
	if err != nil {
		http.Error(w, plaintext.Lines(words(err)), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := http.NewResponseController(w)
	_ = out.Flush()
	err = showText(answer.Body, func(text string) error {
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil && r.Context().Err() == nil {
		panic(http.ErrAbortHandler) // the page must not take it for the end
	}
}

// showText passes text on as it comes, as plain writes it. A character that is cut off waits for its rest.
func showText(from io.Reader, write func(string) error) error {
	buf := make([]byte, 32<<10)
	have := 0
	for {
		n, err := from.Read(buf[have:])
		have += n
		whole := have
		if err == nil {
			whole = complete(buf[:have])
		}
		if whole > 0 {
			if err := write(plaintext.Lines(string(buf[:whole]))); err != nil {
				return err
			}
			have = copy(buf, buf[whole:have])
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// complete returns how much of b does not end in the middle of a character.
func complete(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// file sends one file of a job or a node. It is never shown as anything, whatever is in it.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	to, q := requestedOf(r), r.URL.Query()
	answer, err := s.o.Output(
		r.Context(),
		to.Namespace,
		to.resource(),
		to.Name,
		"log/archive",
		chosen(q, "proc", "step", "sequence", "attempt"),
	)
	if err != nil {
		s.sorry(w, r, "The file cannot be read", err)
		return
	}
	defer answer.Body.Close()
	wanted := path.Join(q.Get("job"), q.Get("path"))
	for from := tar.NewReader(answer.Body); ; {
		header, err := from.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("there is no %s any more", q.Get("path"))
			}
			s.sorry(w, r, "The file cannot be read", err)
			return
		}
		if header.Typeflag != tar.TypeReg || strings.ToValidUTF8(header.Name, "\uFFFD") != wanted {
			continue
		}
		download(w, path.Base(q.Get("path")))
		w.Header().Set("Content-Length", fmt.Sprint(header.Size))
		if _, err := io.CopyN(w, from, header.Size); err != nil {
			panic(http.ErrAbortHandler)
		}
		return
	}
}

// archive sends all output of an attempt.
func (s *Server) archive(w http.ResponseWriter, r *http.Request) {
	to := requestedOf(r)
	answer, err := s.o.Output(
		r.Context(),
		to.Namespace,
		to.resource(),
		to.Name,
		"log/archive",
		chosen(r.URL.Query(), "proc", "step", "sequence", "attempt"),
	)
	if err != nil {
		s.sorry(w, r, "The output cannot be read", err)
		return
	}
	defer answer.Body.Close()
	download(w, to.Name+".tar")
	if _, err := io.Copy(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func download(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
}
