package usage

import (
	"fmt"
	"strconv"
	"strings"
)

// Use is what one job used in its last execution, and what it had asked for. A number that is not known is 0.
type Use struct {
	CPU    int64 // milliseconds, of all its cores together
	Wall   int64 // seconds
	Memory int64 // MiB, the most
	Disk   int64 // KiB, the most

	AskedCPUs   int64
	AskedMemory int64 // MiB
	AskedDisk   int64 // KiB
}

// String returns the form that Parse reads, empty for the zero value.
func (u Use) String() string {
	if u == (Use{}) {
		return ""
	}
	return fmt.Sprint(u.CPU, u.Wall, u.Memory, u.Disk, u.AskedCPUs, u.AskedMemory, u.AskedDisk)
}

// Parse reads what String has written. Anything else is the zero value: nothing is known then.
func Parse(text string) Use {
	var u Use
	numbers := []*int64{&u.CPU, &u.Wall, &u.Memory, &u.Disk, &u.AskedCPUs, &u.AskedMemory, &u.AskedDisk}
	words := strings.Fields(text)
	if len(words) != len(numbers) {
		return Use{}
	}
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || n > Most {
			return Use{}
		}
		*numbers[i] = n
	}
	return u
}

// Most is the largest number of a Use. The owner of a job can write any number into its ad; multiplied by the size of
// its unit, this one still fits into 64 bits.
const Most = 1 << 40
