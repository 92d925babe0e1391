package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/inputs/uploads"
)

func uploadCommand() *cobra.Command {
	var at Connection
	var listed bool
	var dropped string
	c := &cobra.Command{
		Use:   "upload FILE|DIRECTORY... | --list | --delete UPLOAD",
		Short: "Upload large files and directories for the inputs of jobs",
		Long: `Upload files for the inputs of jobs, and print their names, one a line, as spec.inputs takes them:

  inputs:
  - name: events.root
    upload: sha256:...

A directory is packed into an archive of what is in it. With unpack: Directory the jobs get that in a directory of the input's name, with
unpack: Here in the directory of the script.

An upload is named by its content, so a file that the namespace has already is not sent again. A broken connection is resumed; an upload
that was interrupted goes on where it stood when the command is repeated. What no HTCJob or HTCWorkflow names is dropped after a day, and
what some have named when the last of them is deleted. htcd submit --input uploads by itself what is too large for a ConfigMap.

With --list the namespace's uploads are printed: how much is here, the size, the age, and what names them. With --delete one that
nothing names is dropped.

Exit codes: 0 done, 1 something could not be done, 2 a mistake in the command line, 130 interrupted.

Needs the right to patch, list and delete uploads of output.htc.cern.ch, which the ClusterRole htcjob-user has.`,
	}
	at.Flags(c.Flags())
	setting.Bool(c.Flags(), &listed, "list", false, "print the uploads of the namespace")
	setting.Text(
		c.Flags(),
		&dropped,
		"delete",
		"",
		setting.Word,
		"drop this `upload`, sha256:DIGEST, that nothing names",
	)
	c.MarkFlagsMutuallyExclusive("list", "delete")
	c.Args = func(cmd *cobra.Command, args []string) error {
		if named := listed || dropped != ""; named == (len(args) > 0) {
			return setting.Usage{Err: fmt.Errorf("%s: want files, or --list, or --delete UPLOAD", cmd.CommandPath())}
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		switch {
		case listed:
			return where.listUploads(cmd.Context(), cmd.OutOrStdout())
		case dropped != "":
			response, err := where.uploads(cmd.Context(), http.MethodDelete, dropped, nil, nil)
			if err != nil {
				return err
			}
			return response.Body.Close()
		}
		for _, path := range args {
			f, err := fileToUpload(path)
			if err == nil {
				err = where.upload(cmd.Context(), f, cmd.ErrOrStderr())
			}
			if cmd.Context().Err() != nil {
				return Exit{exitInterrupted}
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), f.upload)
		}
		return nil
	}
	return c
}

// toUpload is a file of this machine.
type toUpload struct {
	path    string
	upload  string // its name in the namespace
	size    int64
	archive *os.File // of a directory
}

// open returns the content.
func (f toUpload) open() (io.ReaderAt, func() error, error) {
	if f.archive != nil {
		return f.archive, func() error { return nil }, nil // it may be read again
	}
	from, err := os.Open(f.path) // #nosec G304 -- the user's own
	if err != nil {
		return nil, nil, err
	}
	return from, from.Close, nil
}

func fileToUpload(path string) (toUpload, error) {
	info, err := os.Stat(path) // before it is opened, which waits for whoever writes into a pipe
	switch {
	case err != nil:
		return toUpload{}, err
	case info.IsDir():
		return packed(path)
	case !info.Mode().IsRegular():
		return toUpload{}, fmt.Errorf("%s is no regular file, and no directory", path)
	}
	f, err := os.Open(path) // #nosec G304 -- the user's own
	if err != nil {
		return toUpload{}, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	return toUpload{path: path, upload: fmt.Sprintf("%s%x", uploads.Prefix, sum.Sum(nil)), size: size}, err
}

// uploads asks for something about uploads. The caller closes the body of the answer.
func (c *cluster) uploads(
	ctx context.Context,
	method, name string,
	parameters url.Values,
	body io.Reader,
) (*http.Response, error) {
	return c.send(ctx, method, c.namespace, parameters, body, "uploads", name)
}

// What is sent in one request, and how long that may take: the apiserver breaks it off after a minute, and what has
// come by then counts.
const (
	piece      = 16 << 20
	pieceTakes = 90 * time.Second
)

// addTo begins an upload, or adds a piece to it.
func (c *cluster) addTo(
	ctx context.Context,
	name, parameter string,
	value int64,
	body io.Reader,
) (u uploads.Upload, err error) {
	ctx, stop := context.WithTimeout(ctx, pieceTakes)
	defer stop()
	response, err := c.uploads(ctx, http.MethodPatch, name, url.Values{parameter: {strconv.FormatInt(value, 10)}}, body)
	if err != nil {
		return u, err
	}
	defer response.Body.Close()
	return u, json.NewDecoder(response.Body).Decode(&u)
}

// upload uploads a file, unless it is there. It goes on after whatever passes.
func (c *cluster) upload(ctx context.Context, f toUpload, told io.Writer) error {
	from, done, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	p := &uploading{of: f, w: told, live: terminalOf(told) != nil}
	defer p.end()
	var reached int64
	err = again(ctx, func() (progress bool, err error) {
		u, err := c.addTo(ctx, f.upload, "size", f.size, nil)
		for err == nil && !u.Whole {
			progress = progress || u.Offset > reached
			reached = max(reached, u.Offset)
			p.show(u.Offset)
			section := io.NewSectionReader(from, u.Offset, min(piece, f.size-u.Offset))
			u, err = c.addTo(ctx, f.upload, "offset", u.Offset, section)
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // somebody else has added to it, or dropped it
				err = errors.New(err.Error())
			}
		}
		if err == nil {
			p.show(f.size)
		}
		return progress, err
	})
	if err != nil {
		return fmt.Errorf("upload %s: %w", f.path, err)
	}
	return nil
}

// uploading shows how far an upload is, on a terminal.
type uploading struct {
	of    toUpload
	w     io.Writer
	live  bool
	began bool
}

func (p *uploading) show(offset int64) {
	if offset == p.of.size && !p.began { // it was there
		return
	}
	p.began = true
	if p.live {
		fmt.Fprintf(p.w, "\r\x1b[Kuploading %s: %d of %d MiB", Plain(p.of.path), offset>>20, (p.of.size+1<<20-1)>>20)
	}
}

func (p *uploading) end() {
	if p.live && p.began {
		fmt.Fprintln(p.w)
	}
}

// listUploads prints the uploads of the namespace.
func (c *cluster) listUploads(ctx context.Context, to io.Writer) error {
	response, err := c.uploads(ctx, http.MethodGet, "", nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	table := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "UPLOAD\tHERE\tSIZE\tAGE\tNAMED BY")
	for u, err := range jsonValues[uploads.Upload](response.Body) {
		if err != nil {
			return err
		}
		here := fmt.Sprintf("%d%%", 100*u.Offset/max(u.Size, 1))
		if u.Whole {
			here = "all"
		}
		age := "-"
		if u.Changed.Unix() > 0 { // it was seen to be named
			age = duration.HumanDuration(time.Since(u.Changed))
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", Plain(u.Name), here, u.Size, age, Plain(strings.Join(u.Users, ", ")))
	}
	return table.Flush()
}
