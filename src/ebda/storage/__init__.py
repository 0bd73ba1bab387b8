"""How objects are described for a model file: kinds of fields, and schemas of classes.

A class that a model file can hold has a :class:`~ebda.storage.objects.Schema`, declared
beside the class. The file itself is the business of :mod:`ebda.modelfile`.
"""
