// Package cursor keeps the positions of those who read.
package cursor
