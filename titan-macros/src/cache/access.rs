//! Ownership and write permissions of files and folders.

pub(super) use imp::{User, is_open, make_folder, new_file};

#[cfg(unix)]
mod imp {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
    use std::path::Path;

    /// The write permissions of the group and of all other users.
    const OTHERS_WRITE: u32 = 0o022;

    #[derive(Debug)]
    pub(crate) struct User(u32);

    impl User {
        /// The owner of a file.
        pub(crate) fn of(file: &Metadata) -> User {
            User(file.uid())
        }

        pub(crate) fn owns(&self, file: &Metadata) -> bool {
            file.uid() == self.0
        }
    }

    /// Whether users other than the owner may write.
    pub(crate) fn is_open(file: &Metadata) -> bool {
        file.mode() & OTHERS_WRITE != 0
    }

    /// Creates a folder with access for its user only, unless it exists.
    pub(crate) fn make_folder(dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)
    }

    pub(crate) fn new_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }
}

/// On other systems the folders of a user are private by default, and the standard library cannot check it.
#[cfg(not(unix))]
mod imp {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    #[derive(Debug)]
    pub(crate) struct User;

    impl User {
        pub(crate) fn of(_file: &Metadata) -> User {
            User
        }

        pub(crate) fn owns(&self, _file: &Metadata) -> bool {
            true
        }
    }

    pub(crate) fn is_open(_file: &Metadata) -> bool {
        false
    }

    pub(crate) fn make_folder(dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)
    }

    pub(crate) fn new_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }
}
