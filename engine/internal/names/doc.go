// Package names says which names topics and subscriptions may have.
//
// A name is 1 to 249 characters, each a letter or digit of ASCII, or one of '.', '_' and '-'; and it is neither "." nor "..".
// These are Kafka's rules, so a name may move there, and whatever obeys them is safe as the name of a file: it has no
// separator, no control character and nothing that needs quoting, names no directory above its own, and leaves room in the
// usual 255 bytes for a suffix such as a partition's number. (A file system that does not tell upper from lower case would
// still confuse two names that differ in nothing else; names here are case-sensitive.)
//
// Two names that differ only in '.' and '_' may exist side by side. Kafka warns of such pairs, since its metrics write both
// characters alike; Leat maps a name to nothing else, so here they are simply two names.
package names
