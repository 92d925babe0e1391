package submit

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// archived is the time of every file in the archive: equal graphs have equal archives, and tar has no warning for it.
var archived = time.Unix(1e9, 0)

// archive returns nodes.tgz: the directories of the nodes, and then the files, the last of which shows that all are
// there. 100,000 nodes are a few MB.
func (g DAG) archive(files []File, handed [][]handedOn, hidden []bool) (string, error) {
	var b strings.Builder
	zip, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	to := tarWriter{tar.NewWriter(zip), nil}
	to.dir(DirNodes)
	for n, node := range g.Nodes {
		dir := DAGDir(n)
		to.dir(dir)
		if node.Done {
			continue
		}
		// A node that is ended without a word leaves an empty one.
		if len(handed[node.Step]) > 0 {
			to.dir(dir + "/" + dirPulled)
			for k := range handed[node.Step] {
				to.dir(fmt.Sprintf("%s/%s/%d", dir, dirPulled, k))
			}
		}
		to.file(File{Name: fmt.Sprint(dir, "/", fileOwn, n), Mode: 0o600, Content: node.own()})
		for _, scheme := range g.Steps[node.Step].pluginSchemes() {
			to.link(dir+"/"+filePlugin+scheme, "../../"+stepFile(node.Step, "/")+filePlugin+scheme)
		}
	}
	for k := range g.Steps {
		to.dir(stepFile(k, ""))
	}
	if hidden != nil {
		to.dir(dirBad)
	}
	for _, f := range files {
		to.file(f)
	}
	if err := errors.Join(to.err, to.Close(), zip.Close()); err != nil {
		return "", fmt.Errorf("write %s: %w", fileArchive, err)
	}
	return b.String(), nil
}

// own returns the file that one node alone gets: see read_place in dagnode.sh.
func (n DAGNode) own() string {
	place := n.Place
	if place == "" {
		place = "-"
	}
	return fmt.Sprintf("%s %d\n%s", place, n.Index, n.Variables)
}

// PlaceOf returns the Place of a node from what a fetch of its DAG brought of the nodes.
func PlaceOf(nodes string, number int) (string, error) {
	root, err := os.OpenRoot(filepath.Join(nodes, strconv.Itoa(number)))
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(fmt.Sprint(fileOwn, number))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPlace+1)) // the node's script may have replaced it
	place, _, _ := strings.Cut(string(text), " ")
	return place, err
}

// OwnFiles lists what a fetch has brought of a node that is not its output.
func OwnFiles(nodes string, number int) ([]string, error) {
	own := []string{fmt.Sprint(fileOwn, number), FileResults, dirPulled}
	dir, err := os.Open(filepath.Join(nodes, strconv.Itoa(number))) // #nosec G304 -- of a fetch
	if err != nil {
		return own, err
	}
	defer dir.Close()
	for { // a node can leave any number of files
		names, err := dir.Readdirnames(256)
		if errors.Is(err, io.EOF) {
			return own, nil
		}
		if err != nil {
			return own, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, filePlugin) {
				own = append(own, name)
			}
		}
	}
}

// FileResults is the file of a node's results among its output: the beginning of what its script has written to
// $HTC_RESULTS.
const FileResults = ".htcd-results"

// ResultsOf returns what is in it, "" if there is none.
func ResultsOf(nodes string, number int) (string, error) {
	root, err := os.OpenRoot(filepath.Join(nodes, strconv.Itoa(number)))
	if err != nil {
		return "", err
	}
	defer root.Close()
	if info, err := root.Lstat(FileResults); err != nil || !info.Mode().IsRegular() {
		return "", nil // a script can put anything there
	}
	f, err := root.Open(FileResults)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxResults))
	return string(text), err
}

// maxResults is more than any reader of results uses.
const maxResults = 64 << 10

// tarWriter keeps the first error.
type tarWriter struct {
	*tar.Writer
	err error
}

func (w *tarWriter) dir(name string) {
	w.header(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700})
}

func (w *tarWriter) file(f File) {
	w.header(tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: int64(f.Mode), Size: int64(len(f.Content))})
	if w.err == nil {
		_, w.err = w.Write([]byte(f.Content))
	}
}

func (w *tarWriter) link(name, to string) {
	w.header(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to})
}

func (w *tarWriter) header(h tar.Header) {
	h.ModTime = archived
	if w.err == nil {
		w.err = w.WriteHeader(&h)
	}
}
