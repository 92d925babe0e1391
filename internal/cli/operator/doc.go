// Package operator has what administrators' commands do and print, apart from the daemon's own work.
package operator
