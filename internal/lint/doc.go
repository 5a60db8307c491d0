// Package lint holds no code, only tests that keep the rules of the repository: who may import whom, what the lock-free parts
// take from the standard library, that each atomic field says what it is for, what the module requires, and a few of form.
//
// Each rule is a function from source to a list of complaints, with a test of its own that it does complain, and a test that
// applies it to the repository.
package lint
