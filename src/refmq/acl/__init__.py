"""Access control: who may do what.

| module      | what it knows                                                    |
|-------------|------------------------------------------------------------------|
| `addresses` | patterns of addresses, as white lists have them                  |
| `accounts`  | accounts and their permissions                                   |
| `document`  | the YAML text of an ACL file                                     |
| `policy`    | what all ACL files of a server say together                      |
| `rules`     | what each request code needs                                     |
| `check`     | the decision for one request                                     |
| `changes`   | what mqadmin's ACL commands do to a file                         |

Everything here is a function of its arguments. `refmq.net.acl_files` reads and writes the files.
"""
