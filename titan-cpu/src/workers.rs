//! The threads that run the programs of launches, in addition to the thread that launches.
//!
//! The launching thread takes part in its own launch. When no program is left to take, it waits, blocked, for the threads that
//! are still running one, and does nothing else meanwhile: a thread that ran other tasks while it waits, as the threads of a
//! work-stealing pool do, could start a task that waits for the very launch that the thread runs. A launch needs only its own thread, so
//! launches from any threads, nested or with none of these threads started, terminate.
//!
//! Deliberately absent: everything specific to kernels, and unsafe code: shared data is owned by all threads.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Work that several threads share. Each call does a part of the remaining work, and returns when nothing is left to begin.
pub(crate) trait Task: Send + Sync + 'static {
    /// Does a part of the work. Errors are kept in the task; a panic ends only this call.
    fn work(&self);
}

/// Threads that wait for tasks. They are started when they are first needed and stay.
pub(crate) struct Workers {
    state: Mutex<State>,
    /// Signalled when there may be work to do.
    posted: Condvar,
}

struct State {
    /// Tasks that further threads may join.
    posts: Vec<Post>,
    next: u64,
    /// The number of threads that were started.
    started: usize,
    /// The number of threads that have nothing to do.
    idle: usize,
    /// The number of threads in a task, including those that posted it.
    busy: usize,
}

/// A task and the threads in it.
struct Post {
    id: u64,
    task: Arc<dyn Task>,
    /// The largest number of threads in it at a time.
    threads: usize,
    /// The number of further threads that may join.
    wanted: usize,
    /// The number of threads that have joined and not left.
    joined: usize,
    /// Signalled when no thread is in it any more.
    left: Arc<Condvar>,
}

/// The number of threads that run programs at a time: as many as the processors that this process may use.
pub(crate) fn threads() -> usize {
    static THREADS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));
    *THREADS
}

/// The threads of this process.
pub(crate) fn workers() -> &'static Workers {
    static WORKERS: Workers = Workers::new();
    &WORKERS
}

impl Workers {
    pub(crate) const fn new() -> Workers {
        let state = State { posts: Vec::new(), next: 0, started: 0, idle: 0, busy: 0 };
        Workers { state: Mutex::new(state), posted: Condvar::new() }
    }

    /// Runs a task on this thread and at the same time on up to `threads - 1` others, fewer if they are busy or cannot be
    /// started. Returns when all have left the task; then no other thread has a handle of it.
    pub(crate) fn run(&'static self, task: &Arc<impl Task>, threads: usize) {
        let shared: Arc<dyn Task> = task.clone();
        let id = self.post(shared, threads);
        let own = catch_unwind(AssertUnwindSafe(|| task.work()));
        self.withdraw(id);
        own.unwrap_or_else(|panic| resume_unwind(panic));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets other threads join a task.
    fn post(&'static self, task: Arc<dyn Task>, threads: usize) -> u64 {
        let mut state = self.lock();
        let (id, wanted) = (state.next, threads.saturating_sub(1));
        state.next += 1;
        state.busy += 1;
        self.start(&mut state, wanted);
        let idle = state.idle;
        state.posts.push(Post { id, task, threads, wanted, joined: 0, left: Arc::new(Condvar::new()) });
        drop(state);
        if wanted >= idle {
            self.posted.notify_all();
        } else {
            (0..wanted).for_each(|_| self.posted.notify_one());
        }
        id
    }

    /// Starts threads until there are `wanted`. If one cannot be started, there are fewer until the next launch.
    fn start(&'static self, state: &mut State, wanted: usize) {
        while state.started < wanted {
            let thread = thread::Builder::new().name(format!("titan-cpu-{}", state.started));
            if thread.spawn(|| self.serve()).is_err() {
                return;
            }
            state.started += 1;
            state.idle += 1;
        }
    }

    /// Lets no further thread join a task, and waits until all have left.
    fn withdraw(&self, id: u64) {
        let mut state = self.lock();
        state.busy -= 1;
        let mut at = state.find(id);
        if let Some(post) = at.and_then(|at| state.posts.get_mut(at)) {
            post.wanted = 0;
        }
        while let Some(post) = at.and_then(|at| state.posts.get(at)).filter(|post| post.joined > 0) {
            let left = Arc::clone(&post.left);
            state = left.wait(state).unwrap_or_else(PoisonError::into_inner);
            at = state.find(id);
        }
        at.map(|at| state.posts.swap_remove(at));
        if state.idle > 0 && state.posts.iter().any(|post| post.wanted > 0) {
            drop(state);
            // One processor less is in use, so another thread may join a task.
            self.posted.notify_one();
        }
    }

    /// The loop of a thread.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            let Some((id, task)) = state.join() else {
                state = self.posted.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            // The task keeps its errors and panics itself.
            drop(catch_unwind(AssertUnwindSafe(|| task.work())));
            drop(task);
            state = self.lock();
            state.leave(id);
        }
    }
}

impl State {
    fn find(&self, id: u64) -> Option<usize> {
        self.posts.iter().position(|post| post.id == id)
    }

    /// Joins the task with the fewest threads, as long as a processor is free.
    fn join(&mut self) -> Option<(u64, Arc<dyn Task>)> {
        let (busy, processors) = (self.busy, threads());
        let open = |post: &&mut Post| post.wanted > 0 && busy < processors.max(post.threads);
        let post = self.posts.iter_mut().filter(open).min_by_key(|post| post.joined)?;
        (post.wanted, post.joined) = (post.wanted - 1, post.joined + 1);
        let task = (post.id, Arc::clone(&post.task));
        (self.busy, self.idle) = (self.busy + 1, self.idle - 1);
        Some(task)
    }

    fn leave(&mut self, id: u64) {
        (self.busy, self.idle) = (self.busy - 1, self.idle + 1);
        let Some(post) = self.posts.iter_mut().find(|post| post.id == id) else { return };
        post.joined -= 1;
        if post.joined == 0 {
            post.left.notify_one();
        }
    }
}
