package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/inputs/uploads"
)

const resourceUploads = "uploads" // in no list of resources, like the history

// Uploads stores what users upload for their jobs. Its errors are as those of a Source.
type Uploads interface {
	List(namespace string) ([]uploads.Upload, error)
	Begin(namespace, name string, size int64) (uploads.Upload, error)
	Append(ctx context.Context, namespace, name string, offset int64, body io.Reader) (uploads.Upload, error)
	Delete(namespace, name string) error
}

// silence is how long a body may be silent until its connection counts as lost.
const silence = 30 * time.Second

// serveUploads answers requests for uploads. PATCH with a size begins one, or says where it stands; with an offset it
// adds the body. The apiserver breaks a request off after a minute, so clients send a large file in pieces.
func serveUploads(mux *http.ServeMux, store Uploads, log zerolog.Logger) {
	all := "/apis/" + GroupVersion.String() + "/namespaces/{namespace}/" + resourceUploads
	mux.HandleFunc("GET "+all, func(w http.ResponseWriter, r *http.Request) {
		list, err := store.List(r.PathValue("namespace"))
		if err != nil {
			writeStatus(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		lines := json.NewEncoder(w)
		for _, u := range list {
			if lines.Encode(u) != nil {
				return // the client has gone
			}
		}
	})
	mux.HandleFunc("PATCH "+all+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		u, err := change(store, w, r)
		if err != nil {
			if r.Context().Err() == nil {
				log.Debug().
					Err(err).
					Str("namespace", r.PathValue("namespace")).
					Str("upload", r.PathValue("name")).
					Msg("not taken")
			}
			writeStatus(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(u) // the client may have gone
	})
	mux.HandleFunc("DELETE "+all+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := store.Delete(r.PathValue("namespace"), r.PathValue("name")); err != nil {
			writeStatus(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// change does what a PATCH asks for.
func change(store Uploads, w http.ResponseWriter, r *http.Request) (uploads.Upload, error) {
	values := r.URL.Query()
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	size, begins, err1 := count(values, "size")
	offset, adds, err2 := count(values, "offset")
	switch {
	case err1 != nil:
		return uploads.Upload{}, err1
	case err2 != nil:
		return uploads.Upload{}, err2
	case begins == adds || len(values) > 1:
		return uploads.Upload{}, apierrors.NewBadRequest(
			"want one parameter: size, to begin an upload, or offset, to add to it",
		)
	case begins:
		return store.Begin(namespace, name, size)
	}
	return store.Append(r.Context(), namespace, name, offset, speaking{r.Body, http.NewResponseController(w)})
}

// count reads a parameter.
func count(values url.Values, name string) (n int64, is bool, err error) {
	if !values.Has(name) {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(values.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, true, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: want a number of bytes", name, values.Get(name)))
	}
	return n, true, nil
}

// speaking is a body that fails when nothing comes for too long.
type speaking struct {
	io.Reader
	connection *http.ResponseController
}

func (s speaking) Read(p []byte) (int, error) {
	_ = s.connection.SetReadDeadline(time.Now().Add(silence)) // not every connection has one
	return s.Reader.Read(p)
}
