package submit

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// fileOwn begins the name of the file that one proc alone gets: its number follows. It has what fileToken has, and then
// the proc's item, and travels instead of it, so that HTCondor spools no more files for a proc with an item.
//
// A factory's inputs lie in one directory, which a file for each of a million procs would fill. There fileBlock begins
// the name of a file that a proc shares with the procs beside it: after the tokens follow, for each of them, a line of
// a blank and its number, and its item. The wrapper makes its own file of it.
const (
	fileOwn   = ".own-"
	fileBlock = fileOwn + "of-"
)

// procOwn is such a file's name in the submit description of a cluster, and of a factory before it is one.
const procOwn = fileOwn + "$(ProcId)"

// ownBlock is the variable of a factory's submit description that has the number of a proc's block: it is evaluated for
// each proc.
const ownBlock = "HTCJobBlock"

const (
	mostInBlock   = 256      // procs
	mostBlockSize = 32 << 10 // bytes on the average, which a proc gets, unless its own item is longer
)

// checkItems refuses items that do not fit the description. Their variables have passed CheckVariable.
func (d Description) checkItems() error {
	if len(d.Items) == 0 {
		return nil
	}
	if len(d.Items) != d.Queue {
		return condor.Refusal("%d items for %d jobs: expected one for each", len(d.Items), d.Queue)
	}
	common := len(environmentFile(d.Environment))
	for proc, item := range d.Items {
		if err := checkLines(fmt.Sprint("job ", d.number(proc)), item, common); err != nil {
			return err
		}
		if err := d.checkArgsOf(fmt.Sprint("job ", d.number(proc)), item); err != nil {
			return err
		}
		if item == "" {
			return condor.Refusal("the variables of job %d: expected lines NAME=value", d.number(proc))
		}
	}
	return nil
}

// checkLines refuses variables of a single job that are not lines NAME=value, or too long beside those of all.
func checkLines(job, lines string, common int) error {
	if common+len(lines) > maxEnvironment {
		return condor.Refusal(
			"the variables of %s and spec.environment: expected at most 64 KiB together, found %d bytes: put them into a file that the script reads",
			job,
			common+len(lines),
		)
	}
	if lines != "" && !strings.HasSuffix(lines, "\n") || strings.ContainsAny(lines, "\x00\r") {
		return condor.Refusal("the variables of %s: expected lines NAME=value", job)
	}
	for line := range strings.Lines(lines) {
		if name, _, found := strings.Cut(line, "="); !found || !variableRE.MatchString(name) {
			return condor.Refusal("the variables of %s: expected lines NAME=value", job)
		}
	}
	return nil
}

// itemFiles returns the files of the items, without the tokens that Stage puts first.
func (d Description) itemFiles() []File {
	if d.Parallelism > 0 {
		return d.blocks()
	}
	files := make([]File, len(d.Items))
	for proc, item := range d.Items {
		files[proc] = File{Name: fmt.Sprint(fileOwn, d.number(proc)), Mode: 0o600, Content: item, OfProc: true}
	}
	return files
}

// blocks are the files that a factory's procs share.
func (d Description) blocks() (files []File) {
	per := d.perBlock()
	for first := 0; first < len(d.Items); {
		block, end := d.number(first)/per, first+1
		for end < len(d.Items) && d.number(end)/per == block {
			end++
		}
		from := first
		files = append(files, File{
			Name: fmt.Sprint(fileBlock, block), Mode: 0o600, OfProc: true,
			items: func() string { return d.block(from, end) },
		})
		first = end
	}
	return files
}

// block is the content of a file that some procs share.
func (d Description) block(first, end int) string {
	var b strings.Builder
	for proc := first; proc < end; proc++ {
		fmt.Fprintf(&b, " %d\n%s", d.number(proc), d.Items[proc])
	}
	return b.String()
}

// perBlock returns how many numbers a block is for: fewer where items are long. A few long ones among a million do not
// count: there would be a file for each proc.
func (d Description) perBlock() int {
	per := mostInBlock
	for per > 1 && d.bytesSent(per) > mostBlockSize*len(d.Items) {
		per /= 2
	}
	return per
}

// bytesSent returns how much of items all procs get together if a block is for so many numbers.
func (d Description) bytesSent(per int) (sent int) {
	block, procs, size := 0, 0, 0
	for proc, item := range d.Items {
		if next := d.number(proc) / per; next != block {
			sent += procs * size
			block, procs, size = next, 0, 0
		}
		procs, size = procs+1, size+len(item)
	}
	return sent + procs*size
}
