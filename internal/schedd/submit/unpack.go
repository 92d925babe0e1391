package submit

import (
	_ "embed"
	"strings"
)

// Unpack says what becomes of an input that is a tar archive.
type Unpack string

// The values of Unpack. Without one, the archive stays as it is.
const (
	UnpackDirectory Unpack = "Directory" // what is in it is in a directory of the input's name
	UnpackHere      Unpack = "Here"      // it is in the script's directory
)

//go:embed unpack.sh
var unpackBody string

// archives lists the inputs that are unpacked, with a slash behind those that become directories.
func (d Description) archives() string {
	var names []string
	for _, in := range d.Inputs {
		switch in.Unpack {
		case UnpackDirectory:
			names = append(names, in.Name+"/")
		case UnpackHere:
			names = append(names, in.Name)
		}
	}
	return strings.Join(names, " ")
}
